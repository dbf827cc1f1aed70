import { Server } from './server.ts';
import type { Subject } from './subjects.ts';
import { defaultTiming, type Timing } from './timing.ts';
import type { Batch, WatchOptions } from './types.ts';
import { Watch } from './watch.ts';

/** A watch as an iterator that can be left at any time, also while it waits. */
export function openWatch<Change extends { id: string }, Filter>(
  subject: Subject<Filter>,
  options: WatchOptions<Filter>,
  timing: Timing = defaultTiming,
): AsyncIterableIterator<Batch<Change>> {
  const { url, token, signal } = options;
  const stopped = new AbortController();
  const server = new Server(url, token);
  const batches = new Watch<Change, Filter>(server, subject, options, timing, stopped.signal).batches();
  const stop = (): void => {
    signal?.removeEventListener('abort', stop);
    stopped.abort();
  };
  if (signal?.aborted) stop();
  else signal?.addEventListener('abort', stop);
  const ended = async (): Promise<IteratorReturnResult<undefined>> => {
    stop();
    await batches.return();
    return { done: true, value: undefined };
  };
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: async () => {
      if (stopped.signal.aborted) return ended();
      try {
        const next = await batches.next();
        return next.done || stopped.signal.aborted ? await ended() : next;
      } catch (error) {
        stop();
        throw error;
      }
    },
    return: ended,
  };
}
