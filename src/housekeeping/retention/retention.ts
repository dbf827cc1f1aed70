import { deleteOldChanges } from '../../changelog/delete-old-changes.sql.ts';
import type { Duty } from '../../db/duty.ts';
import type { Database } from '../../db/pool.ts';
import { createSharedDuty } from '../shared-duty.ts';
import { deleteOldEvents, findRunsOfOldEvents } from './delete-attempt-events.sql.ts';
import { deleteOld, type SimpleTable } from './delete-old.sql.ts';
import { deletePassedTurns } from './delete-passed-turns.sql.ts';
import { deleteOldRuns, findOldRuns } from './delete-runs.sql.ts';
import { batchRows } from './old-pages.ts';

/** How many days things are kept; 0 is for ever. */
export interface RetentionDays {
  /** Since the run ended. */
  runs: number;
  /** Likewise. */
  attemptEvents: number;
  events: number;
  changeLog: number;
  audit: number;
}

export interface RetentionOptions {
  db: Database;
  retentionDays: RetentionDays;
  onError: (error: unknown, duty: string) => void;
  log: { info(fields: object, message: string): void };
}

/** A worker that was not heard of for so long is of no interest any more. */
const workersKeptDays = 30;
/** Turns go when they are passed, however old. */
const untilPassed = 1;
const everyMs = 300_000;
const pauseMs = 100;

// Events after runs: they go once no run refers to them.
const kinds = [
  'changes',
  'attemptEvents',
  'runs',
  'events',
  'ingestIncidents',
  'auditEntries',
  'workers',
  'customerTurns',
] as const;
type Kind = (typeof kinds)[number];
type Deleted = Record<Kind, number>;
interface Position {
  kind: Kind;
  /** The last id of the kind that was looked at. */
  after: string | null;
  deleted: Deleted;
}

/** Deletes what is older than it is kept, in small committed batches with a pause after each. */
export function createRetention({ db, retentionDays, onError, log }: RetentionOptions): Duty {
  const keptDays: Record<Kind, number> = {
    changes: retentionDays.changeLog,
    attemptEvents: retentionDays.attemptEvents,
    runs: retentionDays.runs,
    events: retentionDays.events,
    // With the events that they are about.
    ingestIncidents: retentionDays.events,
    auditEntries: retentionDays.audit,
    workers: workersKeptDays,
    customerTurns: untilPassed,
  };
  return createSharedDuty<Position>({
    db,
    name: 'retention',
    everyMs,
    pauseMs,
    onError,
    work: async (last) => {
      const { kind, after, deleted } = last ?? start();
      const days = keptDays[kind];
      const batch =
        days === 0 ? { deleted: 0, more: false, after: null } : await deleters[kind](db, days, after);
      deleted[kind] += batch.deleted;
      if (batch.more) return { position: { kind, after: batch.after, deleted }, over: false };
      const next = kinds[kinds.indexOf(kind) + 1];
      if (next) return { position: { kind: next, after: null, deleted }, over: false };
      if (kinds.some((each) => deleted[each] > 0)) log.info(deleted, 'deleted what was kept long enough');
      return { position: start(), over: true };
    },
  });
}

const start = (): Position => ({
  kind: 'changes',
  after: null,
  deleted: Object.fromEntries(kinds.map((kind) => [kind, 0])) as Deleted,
});

interface DeletedBatch {
  deleted: number;
  more: boolean;
  after: string | null;
}

type Deleter = (db: Database, keptDays: number, after: string | null) => Promise<DeletedBatch>;

const simple =
  (table: SimpleTable): Deleter =>
  async (db, days, after) => {
    const page = await deleteOld(db, table, days, after);
    return { ...page, more: page.after !== null };
  };

const deleters: Record<Kind, Deleter> = {
  changes: async (db, days) => {
    const deleted = await deleteOldChanges(db, days, batchRows);
    return { deleted, more: deleted === batchRows, after: null };
  },
  attemptEvents: async (db, days, after) => {
    const page = await findRunsOfOldEvents(db, days, after);
    if (page.ids.length === 0) return { deleted: 0, more: page.after !== null, after: page.after };
    const { deleted, all } = await deleteOldEvents(db, days, page.ids);
    // What is left of the page is looked at again.
    return all ? { deleted, more: page.after !== null, after: page.after } : { deleted, more: true, after };
  },
  runs: async (db, days, after) => {
    const page = await findOldRuns(db, days, after);
    if (page.ids.length === 0) return { deleted: 0, more: page.after !== null, after: page.after };
    const { runs, all } = await deleteOldRuns(db, days, page.ids);
    // What is left of the page is looked at again.
    return all
      ? { deleted: runs, more: page.after !== null, after: page.after }
      : { deleted: runs, more: true, after };
  },
  events: simple('events'),
  ingestIncidents: simple('ingestIncidents'),
  auditEntries: simple('auditEntries'),
  workers: simple('workers'),
  customerTurns: async (db) => {
    const deleted = await deletePassedTurns(db);
    return { deleted, more: deleted === batchRows, after: null };
  },
};
