import type { ExecutionResult } from 'graphql';
import type { Viewer } from '../domain/credential.ts';
import type { OperationRequest } from './operation-request.ts';

/** A result of an operation, and its bytes as an event, made once for all streams that send it. */
export class StreamedResult {
  readonly result: ExecutionResult;
  /** Position in the change log that a client resumes after; null: the stream has none. */
  readonly cursor: string | null;
  #event: Buffer | null = null;

  constructor(result: ExecutionResult, cursor: string | null) {
    this.result = result;
    this.cursor = cursor;
  }

  get event(): Buffer {
    if (this.#event) return this.#event;
    const id = this.cursor === null ? '' : `id: ${this.cursor}\n`;
    this.#event = Buffer.from(`event: next\n${id}data: ${JSON.stringify(this.result)}\n\n`);
    return this.#event;
  }
}

/** What makes two streams get the same from an event: the operation, and what their callers may see. */
export const operationKey = (
  { query, operationName, variables }: Pick<OperationRequest, 'query' | 'operationName' | 'variables'>,
  { scopes, restrictions }: Viewer,
): string => JSON.stringify([query, operationName, variables, scopes, restrictions]);

type Executed = StreamedResult | Promise<StreamedResult>;

/** By the event, so that they go when nobody has it any more; then by the operation. */
const results = new WeakMap<object, Map<string, Executed>>();

/** Executes an operation once for an event that many streams are given. */
export function executedOnce(event: unknown, operation: string, execute: () => Executed): Executed {
  if (typeof event !== 'object' || event === null) return execute();
  const ofEvent = results.get(event) ?? new Map<string, Executed>();
  results.set(event, ofEvent);
  const known = ofEvent.get(operation) ?? execute();
  ofEvent.set(operation, known);
  return known;
}
