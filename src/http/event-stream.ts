import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionResult,
  execute,
  type GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  type OperationDefinitionNode,
  OperationTypeNode,
  parse,
  validate,
} from 'graphql';
import { HttpError } from './http-error.ts';
import type { OperationRequest } from './operation-request.ts';

export interface EventStreamOptions {
  schema: GraphQLSchema;
  /** Turns whatever an iterator or resolver threw into what a client may see. */
  maskError: (error: unknown) => GraphQLError;
}

/** Streams that are open, so that a stopping server can complete them. */
export type OpenStreams = Set<() => void>;

interface Prepared {
  document: DocumentNode;
  operation: OperationDefinitionNode;
}

/**
 * Answers an operation as an event stream: distinct-connections mode of the GraphQL-over-SSE protocol, with the change
 * log's cursor as the id of each event, so that a browser's own reconnect resumes where it was.
 */
export async function answerAsEventStream(
  request: IncomingMessage,
  response: ServerResponse,
  operation: OperationRequest,
  contextValue: unknown,
  { schema, maskError }: EventStreamOptions,
  openStreams: OpenStreams,
): Promise<void> {
  const { document, operation: definition } = prepare(schema, operation);
  const args = {
    schema,
    document,
    contextValue,
    variableValues: operation.variables,
    operationName: operation.operationName,
  };
  const writer = new EventWriter(response);
  const masked = (result: ExecutionResult): ExecutionResult => ({
    ...result,
    ...(result.errors && { errors: result.errors.map((error) => maskError(error)) }),
  });

  if (definition.operation !== OperationTypeNode.SUBSCRIPTION) {
    const result = await execute(args);
    writer.open();
    await writer.next(masked(result), null);
    writer.complete();
    return;
  }
  const source = await createSourceEventStream(args);
  writer.open();
  if (!(Symbol.asyncIterator in source)) {
    await writer.next(masked(source), null);
    writer.complete();
    return;
  }
  const iterator: AsyncIterator<unknown, unknown> = source[Symbol.asyncIterator]();
  // A disconnect frees the iterator at once, also while it waits for the next change.
  const stop = (): void => void iterator.return?.();
  request.on('close', stop);
  response.on('close', stop);
  openStreams.add(stop);
  try {
    for (;;) {
      const { done, value } = await iterator.next();
      if (done || writer.closed) break;
      const result = await execute({ ...args, rootValue: value });
      await writer.next(masked(result), cursorOf(value));
    }
  } catch (error) {
    await writer.next({ errors: [maskError(error)] }, null);
  } finally {
    openStreams.delete(stop);
    stop();
    writer.complete();
  }
}

function prepare(schema: GraphQLSchema, { query, operationName }: OperationRequest): Prepared {
  let document: DocumentNode;
  try {
    document = parse(query, { maxLexicalTokens: 10_000 });
  } catch (error) {
    throw new HttpError(400, 'GRAPHQL_PARSE_FAILED', error instanceof Error ? error.message : String(error));
  }
  const [fault] = validate(schema, document);
  if (fault) throw new HttpError(400, 'GRAPHQL_VALIDATION_FAILED', fault.message);
  const operation = getOperationAST(document, operationName);
  if (!operation)
    throw new HttpError(
      400,
      'OPERATION_RESOLUTION_FAILURE',
      'Name one of the operations of the document with operationName.',
    );
  return { document, operation };
}

const cursorOf = (value: unknown): string | null =>
  typeof value === 'object' && value !== null && 'cursor' in value && typeof value.cursor === 'string'
    ? value.cursor
    : null;

class EventWriter {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  get closed(): boolean {
    return this.#response.destroyed || this.#response.writableEnded;
  }

  open(): void {
    this.#response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      connection: 'keep-alive',
    });
    // Spread out, so that the clients of a replica that stops do not come back all at once.
    this.#response.write(`retry: ${1000 + Math.floor(Math.random() * 2000)}\n\n`);
  }

  /** Settles when the client took it: a slow client slows only its own stream. */
  async next(result: ExecutionResult, id: string | null): Promise<void> {
    if (this.closed) return;
    const text = `event: next\n${id === null ? '' : `id: ${id}\n`}data: ${JSON.stringify(result)}\n\n`;
    if (this.#response.write(text)) return;
    const left = new AbortController();
    const closed = (): void => left.abort();
    this.#response.once('close', closed);
    await once(this.#response, 'drain', { signal: left.signal }).catch(() => {});
    this.#response.off('close', closed);
  }

  complete(): void {
    if (!this.closed) this.#response.end('event: complete\ndata:\n\n');
  }
}
