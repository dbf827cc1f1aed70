import type { Duty } from '../../db/duty.ts';
import type { Database } from '../../db/pool.ts';
import { transactionByKey } from '../../db/transaction.ts';
import { failureWithStack } from '../../domain/failure.ts';
import { groupBy } from '../../domain/group-by.ts';
import type { WorkObserver } from '../../domain/work-observer.ts';
import { warnOfLoss } from '../../result/tell-endings.ts';
import { createSharedDuty } from '../shared-duty.ts';
import type { LastChange } from './decide-places.ts';
import { findLastChanges } from './find-last-changes.sql.ts';
import { findStrayRows, findSuspectRuns, type Place, type StrayRow } from './find-suspects.sql.ts';
import { type RunRepair, repairRun } from './repair-run.ts';
import { repairScanStarts } from './repair-scan-starts.sql.ts';
import { add, isNothing, noRepairs, type Repairs } from './repairs.ts';

export interface RepairOptions {
  db: Database;
  /** How long nothing must have changed where something does not fit together. */
  thresholdSeconds: number;
  onRepaired: () => void;
  onError: (error: unknown, duty: string) => void;
  log: {
    warn(fields: object, message: string): void;
    error(fields: object, message: string): void;
  };
  observer: WorkObserver | null;
}

/** A round goes through the places, then through runs, from where the round before it stopped. */
type Walk = { over: Place; block: number } | { over: 'RUNS'; pieces: number };
interface Position {
  walk: Walk;
  /** The last run that was looked at; null: from the first one on. */
  afterRun: string | null;
  /** Of this round so far. */
  repairs: Repairs;
}

const everyMs = 300_000;
const pauseMs = 50;
/** 500,000 runs a round: where more are kept, a round goes through a part of them. */
const runPiecesARound = 250;
const places: readonly Place[] = ['READY', 'DELAYED', 'SERIAL', 'LEASE'];
const firstWalk: Walk = { over: 'READY', block: 0 };

/**
 * Finds what no other duty cares for and repairs it: runs, tasks and places that do not fit together. Nothing of that
 * should ever be; each repair is a fault to be looked for, and is logged as one.
 */
export function createRepair(options: RepairOptions): Duty {
  const { db, thresholdSeconds, onError, log } = options;
  return createSharedDuty<Position>({
    db,
    name: 'repair',
    everyMs,
    pauseMs,
    onError,
    work: async (last) => {
      const { walk, afterRun, repairs } = last ?? start(null);
      if (walk.over === 'READY' && walk.block === 0) {
        const done = { scanStarts: await repairScanStarts(db, thresholdSeconds) };
        add(repairs, done);
        if (done.scanStarts > 0) options.onRepaired();
      }
      const look = await lookAt(db, walk, afterRun, thresholdSeconds);
      for (const { runId, strays } of look.suspects) {
        const done = await repairAlone(options, runId, strays);
        add(repairs, done);
      }
      if (look.next) return { position: { ...look.next, repairs }, over: false };
      if (!isNothing(repairs)) log.warn({ ...repairs }, 'housekeeping repaired what did not fit together');
      return { position: start(look.afterRun), over: true };
    },
  });
}

const start = (afterRun: string | null): Position => ({
  walk: firstWalk,
  afterRun,
  repairs: { ...noRepairs },
});

interface Look {
  suspects: { runId: string; strays: StrayRow[] }[];
  /** Null: the round is over. */
  next: Omit<Position, 'repairs'> | null;
  afterRun: string | null;
}

async function lookAt(
  db: Database,
  walk: Walk,
  afterRun: string | null,
  thresholdSeconds: number,
): Promise<Look> {
  if (walk.over === 'RUNS') {
    const { runIds, after } = await findSuspectRuns(db, afterRun, thresholdSeconds);
    const pieces = walk.pieces + 1;
    const more = after !== null && pieces < runPiecesARound;
    return {
      suspects: runIds.map((runId) => ({ runId, strays: [] })),
      next: more ? { walk: { over: 'RUNS', pieces }, afterRun: after } : null,
      afterRun: after,
    };
  }
  const { rows, nextBlock } = await findStrayRows(db, walk.over, walk.block, thresholdSeconds);
  const byRun = groupBy(rows, ({ runId }) => runId);
  const nextPlace = places[places.indexOf(walk.over) + 1];
  const next: Walk =
    nextBlock !== null
      ? { over: walk.over, block: nextBlock }
      : nextPlace
        ? { over: nextPlace, block: 0 }
        : { over: 'RUNS', pieces: 0 };
  return {
    suspects: [...byRun].map(([runId, strays]) => ({ runId, strays })),
    next: { walk: next, afterRun },
    afterRun,
  };
}

/** Repairs one run in transactions of its own: one that cannot be repaired keeps no other from it. */
async function repairAlone(
  { db, thresholdSeconds, onRepaired, log, observer }: RepairOptions,
  runId: string,
  strays: StrayRow[],
): Promise<Repairs> {
  const repairs = { ...noRepairs };
  const repaired = (done: RunRepair): void => {
    add(repairs, done.repairs);
    for (const attempt of done.ended) warnOfLoss(log, attempt);
    if (done.ended.length > 0) observer?.recorded(done.ended, []);
  };
  try {
    const request = { runId, strays, thresholdSeconds };
    const first = await transactionByKey(db, (tx) => repairRun(tx, { ...request, lastChanges: new Map() }));
    repaired(first);
    if (first.toLookUp.length > 0) {
      const lastChanges = await lookUp(db, first.toLookUp);
      const second = await transactionByKey(db, (tx) =>
        repairRun(tx, { ...request, strays: [], lastChanges }),
      );
      repaired(second);
    }
  } catch (error) {
    add(repairs, { failed: 1 });
    log.error({ runId, error: failureWithStack(error) }, 'housekeeping could not repair a run');
  }
  if (!isNothing(repairs)) onRepaired();
  return repairs;
}

/** What is older than the log that is kept was enqueued last: nothing is executed for so long without a change. */
async function lookUp(db: Database, taskIds: readonly string[]): Promise<Map<string, LastChange>> {
  const found = await findLastChanges(db, taskIds);
  const missing = taskIds.filter((id) => !found.has(id));
  if (missing.length === 0) return found;
  const { rows } = await db.query<{ id: string; sequence: number }>({
    name: 'sequences-of-tasks',
    text: 'select id, sequence from runplane.tasks where id = any($1)',
    values: [missing],
  });
  for (const { id, sequence } of rows)
    found.set(id, { status: 'ENQUEUED', sequence, attempts: 0, lost: null });
  return found;
}
