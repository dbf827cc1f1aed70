import type { ExecutionResult } from 'graphql';
import type { Viewer } from '../domain/credential.ts';
import type { OperationRequest } from './operation-request.ts';

/** A result of an operation, and its JSON, made once for all streams that send it. */
export class StreamedResult {
  readonly result: ExecutionResult;
  /** Position in the change log that a client resumes after; null: the stream has none. */
  readonly cursor: string | null;
  #json: string | null = null;

  constructor(result: ExecutionResult, cursor: string | null) {
    this.result = result;
    this.cursor = cursor;
  }

  get json(): string {
    this.#json ??= JSON.stringify(this.result);
    return this.#json;
  }
}

/** What makes two streams get the same from an event: the operation, and what their callers may see. */
export const operationKey = (
  { query, operationName, variables }: Pick<OperationRequest, 'query' | 'operationName' | 'variables'>,
  { scopes, restrictions }: Viewer,
): string => JSON.stringify([query, operationName, variables, scopes, restrictions]);

/** By the event, so that they go when nobody has it any more; then by the operation. */
const results = new WeakMap<object, Map<string, Promise<StreamedResult>>>();

/** Executes an operation once for an event that many streams are given. */
export function executedOnce(
  event: unknown,
  operation: string,
  execute: () => Promise<StreamedResult>,
): Promise<StreamedResult> {
  if (typeof event !== 'object' || event === null) return execute();
  const ofEvent = results.get(event) ?? new Map<string, Promise<StreamedResult>>();
  results.set(event, ofEvent);
  const known = ofEvent.get(operation) ?? execute();
  ofEvent.set(operation, known);
  return known;
}
