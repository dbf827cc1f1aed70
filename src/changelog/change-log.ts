import type { Database } from '../db/pool.ts';
import { nilUuid } from '../domain/ids.ts';
import { findScope } from './attempt-events/event-scope.sql.ts';
import { type EventScope, type LoggedEvent, readEventPage } from './attempt-events/read-events.sql.ts';
import { ScopeEnd } from './attempt-events/scope-end.ts';
import { readChangePage } from './change-page.ts';
import { encodeCursor, type Position } from './cursor.ts';
import { matchesRun, matchesTask } from './filters.ts';
import { interestInEvents, interestInRuns, interestInTasks, scopeOfRuns, scopeOfTasks } from './interest.ts';
import type { LogReader } from './log-reader.ts';
import { LongPolls } from './long-polls.ts';
import { type LoggedChange, type LogScope, readPage } from './read-changes.sql.ts';
import { horizonOf, readSnapshot } from './snapshot.ts';
import { RunsEnd } from './stream-end.ts';
import { Subscription } from './subscription.ts';
import type { AttemptEvent, ChangeLog, RunChange, TaskChange } from './types.ts';

/** Entries of the backlog that a stream reads together. */
const streamPage = 200;

export interface ChangeLogOptions {
  db: Database;
  reader: LogReader<LoggedChange>;
  eventReader: LogReader<LoggedEvent, EventScope>;
  epoch: string;
}

/** The change log as clients see it. */
export function createChangeLog({ db, reader, eventReader, epoch }: ChangeLogOptions): ChangeLog & {
  drain(): void;
  readonly longPolls: number;
} {
  const polls = new LongPolls();
  const log = { db, reader, epoch };
  const stream = {
    reader,
    epoch,
    scope: null,
  };
  const pagesOf = (scope: LogScope) => (after: Position, snapshot: string) =>
    readPage(db, after, snapshot, streamPage, scope);
  return {
    currentCursor: async () => encodeCursor(epoch, { xid: horizonOf(await readSnapshot(db)), id: 0 }),
    taskChanges: (filter, after) =>
      new Subscription({
        ...stream,
        after,
        interest: interestInTasks(filter),
        readPage: pagesOf(scopeOfTasks(filter)),
        select: (change) => (matchesTask(filter, change) ? toTaskChange(change) : null),
        end: filter.runIds ? new RunsEnd(db, filter.runIds) : null,
      }),
    runChanges: (filter, after) =>
      new Subscription({
        ...stream,
        after,
        interest: interestInRuns(filter),
        readPage: pagesOf(scopeOfRuns(filter)),
        select: (change) => (matchesRun(filter, change) ? toRunChange(change) : null),
        end: filter.ids ? new RunsEnd(db, filter.ids) : null,
      }),
    taskChangePage: (filter, { waitMs, clientGone, ...page }) => {
      const matches = (change: LoggedChange): boolean => matchesTask(filter, change);
      const interest = interestInTasks(filter);
      return polls.run(waitMs, clientGone, (end) =>
        readChangePage({ ...log, ...page, interest, matches, toChange: toTaskChange }, end),
      );
    },
    runChangePage: (filter, { waitMs, clientGone, ...page }) => {
      const matches = (change: LoggedChange): boolean => matchesRun(filter, change);
      const interest = interestInRuns(filter);
      return polls.run(waitMs, clientGone, (end) =>
        readChangePage({ ...log, ...page, interest, matches, toChange: toRunChange }, end),
      );
    },
    attemptEvents: async (of, after) => {
      const scope = (await findScope(db, of)) ?? nowhere;
      return new Subscription<LoggedEvent, AttemptEvent, EventScope>({
        reader: eventReader,
        scope,
        interest: interestInEvents(scope),
        readPage: (position, snapshot) => readEventPage(db, scope, position, snapshot),
        epoch,
        after,
        select: (event) => (isOf(scope, event) ? event : null),
        end: new ScopeEnd(db, reader, scope),
      });
    },
    drain: () => polls.drain(),
    get longPolls() {
      return polls.underWay;
    },
  };
}

/** Nothing happens there, and it is over. */
const nowhere: EventScope = { runId: nilUuid, taskId: null, attemptId: null };

const isOf = ({ runId, taskId, attemptId }: EventScope, event: LoggedEvent): boolean =>
  attemptId === null
    ? taskId === null
      ? event.runId === runId
      : event.taskId === taskId
    : event.attemptId === attemptId;

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
