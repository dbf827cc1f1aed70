import type { Database } from '../db/pool.ts';
import { readChangePage } from './change-page.ts';
import { encodeCursor } from './cursor.ts';
import { matchesRun, matchesTask } from './filters.ts';
import type { LogReader } from './log-reader.ts';
import { LongPolls } from './long-polls.ts';
import { horizonOf, type LoggedChange, readSnapshot } from './read-changes.sql.ts';
import { Subscription } from './subscription.ts';
import type { ChangeLog, RunChange, TaskChange } from './types.ts';

/** The change log as clients see it. */
export function createChangeLog(
  db: Database,
  reader: LogReader,
  epoch: string,
): ChangeLog & { drain(): void } {
  const polls = new LongPolls();
  const log = { db, reader, epoch };
  return {
    currentCursor: async () => encodeCursor(epoch, { xid: horizonOf(await readSnapshot(db)), id: 0 }),
    taskChanges: (filter, after) =>
      new Subscription({
        ...log,
        after,
        select: (change) => (matchesTask(filter, change) ? toTaskChange(change) : null),
        untilRunsEnd: filter.runIds ?? null,
      }),
    runChanges: (filter, after) =>
      new Subscription({
        ...log,
        after,
        select: (change) => (matchesRun(filter, change) ? toRunChange(change) : null),
        untilRunsEnd: filter.ids ?? null,
      }),
    taskChangePage: (filter, { waitMs, clientGone, ...page }) => {
      const matches = (change: LoggedChange): boolean => matchesTask(filter, change);
      return polls.run(waitMs, clientGone, (end) =>
        readChangePage({ ...log, ...page, matches, toChange: toTaskChange }, end),
      );
    },
    runChangePage: (filter, { waitMs, clientGone, ...page }) => {
      const matches = (change: LoggedChange): boolean => matchesRun(filter, change);
      return polls.run(waitMs, clientGone, (end) =>
        readChangePage({ ...log, ...page, matches, toChange: toRunChange }, end),
      );
    },
    drain: () => polls.drain(),
  };
}

const toTaskChange = (change: LoggedChange): TaskChange => ({
  id: change.id,
  sequence: change.sequence,
  at: change.at,
  taskId: change.taskId ?? '',
  runId: change.runId,
  job: change.job,
  step: change.step ?? '',
  agent: change.agent ?? '',
  attemptId: change.attemptId,
  attemptNumber: change.attemptNumber,
  fromStatus: change.fromStatus as TaskChange['fromStatus'],
  toStatus: change.toStatus as TaskChange['toStatus'],
  errorCode: change.errorCode,
  reason: change.reason,
});

const toRunChange = (change: LoggedChange): RunChange => ({
  id: change.id,
  sequence: change.sequence,
  at: change.at,
  runId: change.runId,
  job: change.job,
  fromStatus: change.fromStatus as RunChange['fromStatus'],
  toStatus: change.toStatus as RunChange['toStatus'],
  reason: change.reason,
});
