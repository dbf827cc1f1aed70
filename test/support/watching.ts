import { expect } from 'vitest';
import { openWatch } from '../../src/client/open-watch.ts';
import { runs } from '../../src/client/subjects.ts';
import { defaultTiming, type Timing } from '../../src/client/timing.ts';
import type { RunChangeFilter, RunStatusChange, WatchOptions, WatchState } from '../../src/client/types.ts';
import { toPublicLogId } from '../../src/domain/ids.ts';
import type { ControlPlane } from './control-plane.ts';

/** Short enough for tests; long enough for a busy machine. */
export const quickly: Timing = { ...defaultTiming, gapMs: 20, retryMs: 20, maxRetryMs: 200 };

export interface Watching {
  changes: RunStatusChange[];
  /** Each state that it told, in order. */
  states: WatchState[];
  causes: (Error | null)[];
  cursor: string | null;
  /** Until a change of this run to this status came. */
  until(runId: string, status?: string): Promise<void>;
  untilState(state: WatchState): Promise<void>;
  /** Settles when the watch is over, with what it threw. */
  over: Promise<unknown>;
  stop(): Promise<void>;
}

/** Watches changes of runs and keeps what it sees. */
export function startWatching(
  options: WatchOptions<RunChangeFilter>,
  timing: Partial<Timing> = {},
): Watching {
  const left = new AbortController();
  const seen: Pick<Watching, 'changes' | 'states' | 'causes' | 'cursor'> = {
    changes: [],
    states: [],
    causes: [],
    cursor: null,
  };
  const batches = openWatch<RunStatusChange, RunChangeFilter>(
    runs,
    {
      ...options,
      signal: left.signal,
      onState: (state, cause) => {
        seen.states.push(state);
        seen.causes.push(cause);
      },
    },
    { ...quickly, ...timing },
  );
  const follow = async (): Promise<void> => {
    for await (const { changes, cursor } of batches) {
      seen.changes.push(...changes);
      seen.cursor = cursor;
    }
  };
  const over = follow().then(
    () => null,
    (error: unknown) => error,
  );
  const patiently = { timeout: 25_000, interval: 20 };
  return Object.assign(seen, {
    over,
    until: (runId: string, status = 'QUEUED') =>
      expect
        .poll(() => seen.changes, patiently)
        .toContainEqual(expect.objectContaining({ runId, toStatus: status })),
    untilState: (state: WatchState) => expect.poll(() => seen.states.at(-1), patiently).toBe(state),
    stop: async () => {
      left.abort();
      expect(await over).toBeNull();
    },
  });
}

/** Of all changes of runs, as the log has them. */
export async function loggedIds({ services: { changeLog } }: ControlPlane): Promise<string[]> {
  const ids = new Set<string>();
  const request = { first: 200, waitMs: 0, clientGone: new AbortController().signal };
  for (let after: string | null = null; ; ) {
    const { changes, cursor, caughtUp } = await changeLog.runChangePage({}, { ...request, after });
    // What has to come before an entry of a page comes again with its own.
    for (const { number } of changes) ids.add(toPublicLogId('chg', number));
    if (caughtUp) return [...ids];
    after = cursor;
  }
}

/** That all of these were seen, each once and those of one run in order. */
export function expectEachOnce(changes: readonly RunStatusChange[], ids: readonly string[]): void {
  expect(changes.map(({ id }) => id).sort()).toEqual([...ids].sort());
  const last = new Map<string, number>();
  for (const { runId, sequence } of changes) {
    expect(sequence).toBeGreaterThan(last.get(runId) ?? 0);
    last.set(runId, sequence);
  }
}
