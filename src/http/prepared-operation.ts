import type { IncomingMessage } from 'node:http';
import {
  type DocumentNode,
  GraphQLError,
  getOperationAST,
  type OperationDefinitionNode,
  OperationTypeNode,
} from 'graphql';
import type { Authority } from '../domain/credential.ts';
import { hasSession, requireSignedIn } from './authentication.ts';
import type { BodyRoom } from './body.ts';
import type { Documents } from './documents.ts';
import { HttpError } from './http-error.ts';
import { checkBodySize, type OperationRequest, readOperation } from './operation-request.ts';
import { hasOnlyRootFields } from './root-fields.ts';
import type { TrustedDocuments } from './trusted-documents.ts';

/** An operation that was read, and found to be within the limits. */
export interface PreparedOperation {
  request: OperationRequest;
  /** Null: it is no GraphQL. */
  document: DocumentNode | null;
  /** Null: operationName names none of several. */
  definition: OperationDefinitionNode | null;
  /** Why it cannot be executed. */
  errors: readonly GraphQLError[];
}

export interface PrepareOptions {
  documents: Documents;
  trusted: TrustedDocuments | null;
  strangersBodies: BodyRoom;
  /** Whether everybody is signed in, by being able to reach the server. */
  authenticationOff: boolean;
}

const resultReports = new Set(['reportResult', 'reportResults']);

/** Reads what a request asks for, the same way for all transports; refuses what is beyond a limit or not allowed. */
export async function prepareOperation(
  request: IncomingMessage,
  authority: Authority,
  { documents, trusted, strangersBodies, authenticationOff }: PrepareOptions,
): Promise<PreparedOperation> {
  const operation = await readOperation(request, trusted, authority.viewer.signedIn ? null : strangersBodies);
  const parsed = documents.parse(operation.query);
  const document = parsed instanceof GraphQLError ? null : parsed;
  checkBodySize(operation.bytes, () => document !== null && hasOnlyRootFields(document, resultReports));
  requireSignedIn(authority, document);
  if (document === null) {
    return { request: operation, document, definition: null, errors: [parsed as GraphQLError] };
  }
  const definition = getOperationAST(document, operation.operationName) ?? null;
  if (request.method === 'GET' && definition) {
    checkGet(definition, authenticationOff || hasSession(request));
  }
  const hideSuggestions = !authority.viewer.signedIn;
  const faults = documents.validate(operation.query, document, operation.variables, hideSuggestions);
  const errors = faults.length > 0 || definition ? faults : [notResolved()];
  return { request: operation, document, definition, errors };
}

const notResolved = (): GraphQLError =>
  new GraphQLError('Name one of the operations of the document with operationName.', {
    extensions: { code: 'OPERATION_RESOLUTION_FAILURE' },
  });

/** By GET come questions, and the streams of a page, whose EventSource can do nothing else. */
function checkGet({ operation }: OperationDefinitionNode, fromPage: boolean): void {
  if (operation === OperationTypeNode.QUERY || (operation === OperationTypeNode.SUBSCRIPTION && fromPage))
    return;
  const what =
    operation === OperationTypeNode.MUTATION
      ? 'Send mutations by POST.'
      : 'Send subscriptions by POST; GET is for the session of a page.';
  throw new HttpError(405, 'METHOD_NOT_ALLOWED', what, { headers: { allow: 'POST' } });
}
