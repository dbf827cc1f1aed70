import type { Database } from '../db/pool.ts';
import { encodeCursor } from './cursor.ts';
import { matchesRun, matchesTask } from './filters.ts';
import type { LogReader } from './log-reader.ts';
import { horizonOf, type LoggedChange, readSnapshot } from './read-changes.sql.ts';
import { Subscription } from './subscription.ts';
import type { ChangeLog, RunChange, TaskChange } from './types.ts';

/** The change log as clients see it. */
export function createChangeLog(db: Database, reader: LogReader, epoch: string): ChangeLog {
  return {
    currentCursor: async () => encodeCursor(epoch, { xid: horizonOf(await readSnapshot(db)), id: 0 }),
    taskChanges: (filter, after) =>
      new Subscription({
        db,
        reader,
        epoch,
        after,
        select: (change) => (matchesTask(filter, change) ? toTaskChange(change) : null),
        untilRunsEnd: filter.runIds ?? null,
      }),
    runChanges: (filter, after) =>
      new Subscription({
        db,
        reader,
        epoch,
        after,
        select: (change) => (matchesRun(filter, change) ? toRunChange(change) : null),
        untilRunsEnd: filter.ids ?? null,
      }),
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
