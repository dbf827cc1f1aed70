import { encodeCursor } from '../changelog/cursor.ts';
import type { Database, Queryable } from '../db/pool.ts';
import { asTransactions, transaction } from '../db/transaction.ts';
import { limits } from '../domain/limits.ts';
import type { IdempotencyConflict } from '../domain/problems.ts';
import { TimeBudget } from '../domain/time-bound.ts';
import { type DebouncedLaunch, settleDebounced } from './debounce-launches.ts';
import { changeRuns, saveDebounces } from './debounces.sql.ts';
import { findRemembered, type KeyedObject, keyName, type Remembered, remember } from './idempotency.ts';
import { findReplayedEvents, insertEvents } from './insert-events.sql.ts';
import { insertRuns } from './insert-runs.sql.ts';
import type { JobCatalog } from './job-catalog.ts';
import type { IdempotencyKey } from './parse-launch.ts';
import {
  type Admission,
  type AdmissionOutcome,
  keyOf,
  type Planned,
  planAdmissions,
} from './plan-admissions.ts';
import type { RouteRefusal } from './types.ts';

/** Another transaction was faster with a key of the group: the group is repeated and finds what that one made. */
export class KeyTaken extends Error {}

/** Admits a group in one transaction, each member with its own outcome. Keys within a group are distinct. */
export async function admit(
  db: Database,
  epoch: string,
  catalog: JobCatalog,
  admissions: readonly Admission[],
): Promise<AdmissionOutcome[]> {
  const outcomes = new Map<number, AdmissionOutcome>();
  const budget = new TimeBudget(limits.sharedMs, limits.hurriedMs);
  await answerRepeated(db, epoch, admissions, outcomes);
  const { planned, debounced } = await planAdmissions(db, catalog, admissions, budget, outcomes);
  if (debounced.length > 0) {
    for (const [index, outcome] of await storeDebounced(db, epoch, catalog, budget, planned, debounced))
      outcomes.set(index, outcome);
  } else if (planned.length > 0) {
    succeed(planned, encodeCursor(epoch, { xid: await store(db, planned), id: 0 }), outcomes);
  }
  return admissions.map((_, index) => outcomes.get(index) as AdmissionOutcome);
}

const succeed = (
  planned: readonly Planned[],
  cursor: string,
  outcomes: Map<number, AdmissionOutcome>,
): void => {
  for (const admitted of planned) outcomes.set(admitted.index, success(admitted, cursor));
};

/** Stores what was planned, in one transaction; answers where in the change log it begins. */
function store(db: Database, planned: readonly Planned[]): Promise<bigint> {
  const plans = planned.flatMap((admitted) => admitted.plans);
  const events = planned.flatMap(({ event }) => event ?? []);
  const keyed = planned.flatMap(keyedObject);
  const isSerial = plans.some(({ tasks }) => tasks.some((task) => task.serial_key !== undefined));
  // Mostly it is a single statement, which needs no transaction around it.
  if (events.length === 0 && keyed.length === 0 && !isSerial) return insertRuns(asTransactions(db), plans);
  return transaction(db, async (tx) => {
    if ((await remember(tx, keyed)).size > 0) throw new KeyTaken();
    await insertEvents(tx, events);
    return insertRuns(tx, plans);
  });
}

const keyedObject = ({ key, objectId }: Planned): KeyedObject[] =>
  key ? [{ key, objectId, position: null }] : [];

/**
 * Stores launches that are debounced, and what was planned beside them. What becomes of them is decided in the
 * transaction, under the locks of their keys, which come before all others; so each repeat of it decides anew.
 */
function storeDebounced(
  db: Database,
  epoch: string,
  catalog: JobCatalog,
  budget: TimeBudget,
  planned: readonly Planned[],
  debounced: readonly DebouncedLaunch[],
): Promise<Map<number, AdmissionOutcome>> {
  return transaction(db, async (tx) => {
    const settled = await settleDebounced(tx, catalog, budget, debounced);
    const outcomes = new Map<number, AdmissionOutcome>();
    const there = new Set(settled.changedRuns.map(({ run }) => run.id));
    const keyed = planned.flatMap(keyedObject);
    for (const { index, launch } of debounced) {
      const outcome = settled.outcomes.get(index);
      if (!outcome) continue;
      if ('kind' in outcome) {
        outcomes.set(index, outcome);
        continue;
      }
      const { runId, position } = outcome;
      if (launch.key) keyed.push({ key: launch.key, objectId: runId, position });
      const cursor = encodeCursor(epoch, { xid: position, id: 0 });
      const joined = there.has(runId);
      there.add(runId);
      outcomes.set(index, { kind: 'LaunchRunSuccess', runId, replayed: false, joined, cursor });
    }
    if ((await remember(tx, keyed)).size > 0) throw new KeyTaken();
    await insertEvents(
      tx,
      planned.flatMap(({ event }) => event ?? []),
    );
    await changeRuns(tx, settled.changedRuns);
    const plans = [...planned.flatMap((admitted) => admitted.plans), ...settled.newRuns];
    if (planned.length > 0 || plans.length > 0) {
      const xid = await insertRuns(tx, plans);
      succeed(planned, encodeCursor(epoch, { xid, id: 0 }), outcomes);
    }
    await saveDebounces(tx, settled.rows);
    return outcomes;
  });
}

function success({ objectId, plans, event }: Planned, cursor: string): AdmissionOutcome {
  if (!event) return { kind: 'LaunchRunSuccess', runId: objectId, replayed: false, cursor };
  const runIds = plans.map(({ run }) => run.id);
  return {
    kind: 'PublishEventSuccess',
    eventId: objectId,
    runIds,
    refusals: event.refusals,
    replayed: false,
    cursor,
  };
}

/** Answers the members whose key was used before: with what it made then, or with a conflict. */
async function answerRepeated(
  db: Queryable,
  epoch: string,
  admissions: readonly Admission[],
  outcomes: Map<number, AdmissionOutcome>,
): Promise<void> {
  const known = await findRemembered(
    db,
    admissions.flatMap((admission) => keyOf(admission) ?? []),
  );
  if (known.size === 0) return;
  const events = await findReplayedEvents(
    db,
    [...known.values()].map((r) => r.objectId),
  );
  for (const [index, admission] of admissions.entries()) {
    const key = keyOf(admission);
    const before = key && known.get(keyName(key));
    if (!key || !before) continue;
    outcomes.set(
      index,
      before.digest.equals(key.digest) ? replayed(key, before, epoch, events) : conflict(key, before),
    );
  }
}

function replayed(
  key: IdempotencyKey,
  before: Remembered,
  epoch: string,
  events: ReadonlyMap<string, { refusals: RouteRefusal[]; runIds: string[] }>,
): AdmissionOutcome {
  const cursor = encodeCursor(epoch, { xid: before.xid, id: 0 });
  if (key.kind === 'launch')
    return { kind: 'LaunchRunSuccess', runId: before.objectId, replayed: true, cursor };
  const { runIds = [], refusals = [] } = events.get(before.objectId) ?? {};
  return { kind: 'PublishEventSuccess', eventId: before.objectId, runIds, refusals, replayed: true, cursor };
}

const conflict = (key: IdempotencyKey, before: Remembered): IdempotencyConflict => ({
  kind: 'IdempotencyConflict',
  existingId: before.objectId,
  message:
    key.kind === 'launch'
      ? 'This idempotency key launched a run with another input. Use a new key for new input.'
      : `This idempotency key was used on topic ${key.scope} with another payload. Use a new key for a new event.`,
});
