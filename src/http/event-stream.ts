import type { ServerResponse } from 'node:http';
import { EventWriter } from './event-writer.ts';
import { type Execution, OperationResults } from './operation-results.ts';

/** Streams that are open, so that a stopping server can cut them. */
export type OpenStreams = Set<() => void>;

/**
 * Answers an operation as an event stream: distinct-connections mode of the GraphQL-over-SSE protocol, with the change
 * log's cursor as the id of each event, so that a browser's own reconnect resumes where it was.
 */
export async function answerAsEventStream(
  response: ServerResponse,
  execution: Execution,
  openStreams: OpenStreams,
): Promise<void> {
  const results = await OperationResults.start(execution);
  const writer = new EventWriter(response);
  // A disconnect frees the source at once, also while it waits for the next change.
  const stop = (): void => void results.return();
  response.on('close', stop);
  // The end of a server is not that of its streams: cut, without an event that completes them, they are resumed elsewhere.
  const cut = (): void => {
    writer.end();
    stop();
  };
  openStreams.add(cut);
  if (response.destroyed) stop();
  writer.open();
  try {
    results.offerTo(({ event }) => writer.writeNow(event));
    for await (const { event } of results) await writer.write(event);
  } finally {
    openStreams.delete(cut);
    stop();
    writer.end('event: complete\ndata:\n\n');
  }
}
