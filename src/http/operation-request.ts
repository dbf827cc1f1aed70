import type { IncomingMessage } from 'node:http';
import { Kind, OperationTypeNode, parse } from 'graphql';
import { limits } from '../domain/limits.ts';
import { readJsonBody } from './body.ts';
import { HttpError } from './http-error.ts';

/** What a client asks to have executed, as it came. */
export interface OperationRequest {
  query: string;
  operationName: string | null;
  variables: Record<string, unknown> | null;
}

/** Reads the body; past 1 MiB it may only report results. */
export async function readBody(request: IncomingMessage): Promise<Record<string, unknown>> {
  const { body, bytes } = await readJsonBody(request);
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new HttpError(
      400,
      'BAD_REQUEST',
      'The request body must be one JSON object; batches are not served.',
    );
  }
  const operation = body as Record<string, unknown>;
  if (bytes > limits.bodyBytes && !onlyReportsResults(operation.query)) {
    throw new HttpError(
      413,
      'BODY_TOO_LARGE',
      `The request body is ${bytes} bytes; more than ${limits.bodyBytes} are only for reportResult and reportResults.`,
    );
  }
  return operation;
}

function onlyReportsResults(query: unknown): boolean {
  if (typeof query !== 'string') return false;
  try {
    const { definitions } = parse(query, { maxLexicalTokens: 10_000 });
    return definitions.every(
      (definition) =>
        definition.kind === Kind.FRAGMENT_DEFINITION ||
        (definition.kind === Kind.OPERATION_DEFINITION &&
          definition.selectionSet.selections.every(
            (field) =>
              field.kind === Kind.FIELD && ['reportResult', 'reportResults'].includes(field.name.value),
          )),
    );
  } catch {
    return false;
  }
}

export function operationOf(body: Record<string, unknown>): OperationRequest {
  const { query, operationName = null, variables = null } = body;
  if (typeof query !== 'string') throw new HttpError(400, 'BAD_REQUEST', 'query must be a string.');
  if (operationName !== null && typeof operationName !== 'string')
    throw new HttpError(400, 'BAD_REQUEST', 'operationName must be a string.');
  if (typeof variables !== 'object' || Array.isArray(variables))
    throw new HttpError(400, 'BAD_REQUEST', 'variables must be an object.');
  return { query, operationName, variables: variables as Record<string, unknown> | null };
}

export function operationOfUrl(request: IncomingMessage): OperationRequest {
  if (request.method !== 'GET')
    throw new HttpError(405, 'METHOD_NOT_ALLOWED', 'Use POST, or GET for queries and subscriptions.');
  const parameters = new URL(request.url ?? '/', 'http://localhost').searchParams;
  const variables = parameters.get('variables');
  try {
    const operation = operationOf({
      query: parameters.get('query'),
      operationName: parameters.get('operationName'),
      variables: variables === null ? null : JSON.parse(variables),
    });
    if (
      parse(operation.query).definitions.some(
        (d) => d.kind === Kind.OPERATION_DEFINITION && d.operation === OperationTypeNode.MUTATION,
      )
    ) {
      throw new HttpError(405, 'METHOD_NOT_ALLOWED', 'Send mutations by POST.');
    }
    return operation;
  } catch (error) {
    if (error instanceof HttpError) throw error;
    throw new HttpError(400, 'BAD_REQUEST', 'query or variables of the URL cannot be read.');
  }
}
