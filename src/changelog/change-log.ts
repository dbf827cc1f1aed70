import type { Database } from '../db/pool.ts';
import { nilUuid } from '../domain/ids.ts';
import { findScope } from './attempt-events/event-scope.sql.ts';
import { type EventScope, type LoggedEvent, readEventPage } from './attempt-events/read-events.sql.ts';
import { ScopeEnd } from './attempt-events/scope-end.ts';
import { readChangePage } from './change-page.ts';
import { encodeCursor, type Position } from './cursor.ts';
import { type LoggedRunChange, type LoggedTaskChange, runMatcher, taskMatcher } from './filters.ts';
import { interestInEvents, interestInRuns, interestInTasks, scopeOfRuns, scopeOfTasks } from './interest.ts';
import type { LogReader } from './log-reader.ts';
import { LongPolls } from './long-polls.ts';
import { type ChangeScope, type LoggedChange, type LogScope, readPage } from './read-changes.sql.ts';
import { horizonOf, readSnapshot } from './snapshot.ts';
import { RunsEnd } from './stream-end.ts';
import { Subscription } from './subscription.ts';
import type { ChangeLog } from './types.ts';

/** Entries of the backlog that a stream reads together. */
const streamPage = 200;

export interface ChangeLogOptions {
  db: Database;
  reader: LogReader<LoggedChange, ChangeScope>;
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
  const stream = { reader, epoch, bytesOf: bytesOfChange };
  const pagesOf = (scope: LogScope) => (after: Position, snapshot: string) =>
    readPage(db, after, snapshot, streamPage, scope);
  return {
    currentCursor: async () => encodeCursor(epoch, { xid: horizonOf(await readSnapshot(db)), id: 0 }),
    taskChanges: (filter, after) =>
      new Subscription<LoggedChange, LoggedTaskChange, ChangeScope>({
        ...stream,
        after,
        interest: interestInTasks(filter),
        readPage: pagesOf(scopeOfTasks(filter)),
        select: taskMatcher(filter),
        end: filter.runIds ? new RunsEnd(db, filter.runIds) : null,
      }),
    runChanges: (filter, after) =>
      new Subscription<LoggedChange, LoggedRunChange, ChangeScope>({
        ...stream,
        after,
        interest: interestInRuns(filter),
        readPage: pagesOf(scopeOfRuns(filter)),
        select: runMatcher(filter),
        end: filter.ids ? new RunsEnd(db, filter.ids) : null,
      }),
    taskChangePage: (filter, { waitMs, clientGone, ...page }) => {
      const asked = { interest: interestInTasks(filter), matches: taskMatcher(filter) };
      return polls.run(waitMs, clientGone, (end) => readChangePage({ ...log, ...page, ...asked }, end));
    },
    runChangePage: (filter, { waitMs, clientGone, ...page }) => {
      const asked = { interest: interestInRuns(filter), matches: runMatcher(filter) };
      return polls.run(waitMs, clientGone, (end) => readChangePage({ ...log, ...page, ...asked }, end));
    },
    attemptEvents: async (of, after) => {
      const scope = (await findScope(db, of)) ?? nowhere;
      return new Subscription<LoggedEvent, LoggedEvent, EventScope>({
        reader: eventReader,
        interest: interestInEvents(scope),
        readPage: (position, snapshot) => readEventPage(db, scope, position, snapshot),
        epoch,
        after,
        select: (event): event is LoggedEvent => isOf(scope, event),
        bytesOf: ({ bytes }) => bytes + fixedBytes,
        end: new ScopeEnd(db, reader, scope),
      });
    },
    drain: () => polls.drain(),
    get longPolls() {
      return polls.underWay;
    },
  };
}

/** About what an entry takes beside what is of any length. */
const fixedBytes = 400;
const bytesOfChange = (change: LoggedChange): number => {
  const { job, step, agent, customer, correlationId, idempotencyKey, labels, reason } = change;
  const names = [job, step, agent, customer, correlationId, idempotencyKey];
  return (
    names.reduce((sum, name) => sum + (name?.length ?? 0), fixedBytes) +
    bytesOfJson(labels) +
    (reason === null ? 0 : bytesOfJson(reason))
  );
};
const bytesOfJson = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

/** Nothing happens there, and it is over. */
const nowhere: EventScope = { runId: nilUuid, taskId: null, attemptId: null };

const isOf = ({ runId, taskId, attemptId }: EventScope, event: LoggedEvent): boolean =>
  attemptId === null
    ? taskId === null
      ? event.runId === runId
      : event.taskId === taskId
    : event.attemptId === attemptId;
