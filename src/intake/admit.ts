import { encodeCursor } from '../changelog/cursor.ts';
import type { Database, Queryable } from '../db/pool.ts';
import { asTransactions, transaction } from '../db/transaction.ts';
import { newUuid, toPublicId } from '../domain/ids.ts';
import type { IdempotencyConflict, JobNotFound } from '../domain/problems.ts';
import { fanOut, loadRoutes, type StoredEvent } from './fan-out.ts';
import { findRemembered, keyName, type Remembered, remember } from './idempotency.ts';
import { findReplayedEvents, insertEvents } from './insert-events.sql.ts';
import { insertRuns } from './insert-runs.sql.ts';
import type { JobCatalog } from './job-catalog.ts';
import type { IncomingEvent } from './parse-event.ts';
import type { IdempotencyKey, Launch } from './parse-launch.ts';
import { isPlan, planRun, type RunPlan } from './plan-run.ts';
import type { LaunchRunOutcome, PublishEventOutcome, RouteRefusal } from './types.ts';

/** One command of a group: a launch, or an event with all that it launches. */
export type Admission = { launch: Launch } | { event: IncomingEvent };
export type AdmissionOutcome = LaunchRunOutcome | PublishEventOutcome;

interface Planned {
  index: number;
  key: IdempotencyKey | null;
  objectId: string;
  plans: RunPlan[];
  event: { stored: StoredEvent; refusals: RouteRefusal[] } | null;
}

const keyOf = (admission: Admission): IdempotencyKey | null =>
  'launch' in admission ? admission.launch.key : admission.event.key;

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
  await answerRepeated(db, epoch, admissions, outcomes);
  const planned = await plan(db, catalog, admissions, outcomes);
  if (planned.length > 0) {
    const cursor = encodeCursor(epoch, { xid: await store(db, planned), id: 0 });
    for (const admitted of planned) outcomes.set(admitted.index, success(admitted, cursor));
  }
  return admissions.map((_, index) => outcomes.get(index) as AdmissionOutcome);
}

/** Stores what was planned, in one transaction; answers where in the change log it begins. */
function store(db: Database, planned: readonly Planned[]): Promise<bigint> {
  const plans = planned.flatMap((admitted) => admitted.plans);
  const events = planned.flatMap(({ event }) => event ?? []);
  const keyed = planned.flatMap(({ key, objectId }) => (key ? [{ key, objectId }] : []));
  const isSerial = plans.some(({ tasks }) => tasks.some((task) => task.serial_key !== null));
  // Mostly it is a single statement, which needs no transaction around it.
  if (events.length === 0 && keyed.length === 0 && !isSerial) return insertRuns(asTransactions(db), plans);
  return transaction(db, async (tx) => {
    if ((await remember(tx, keyed)).size > 0) throw new KeyTaken();
    await insertEvents(tx, events);
    return insertRuns(tx, plans);
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

const jobNotFound = (name: string): JobNotFound => ({
  kind: 'JobNotFound',
  message: `There is no enabled job ${JSON.stringify(name)}.`,
});

async function plan(
  db: Queryable,
  catalog: JobCatalog,
  admissions: readonly Admission[],
  outcomes: Map<number, AdmissionOutcome>,
): Promise<Planned[]> {
  const open = [...admissions.entries()].filter(([index]) => !outcomes.has(index));
  const topics = open.flatMap(([, admission]) => ('event' in admission ? [admission.event.topic] : []));
  const routes = topics.length > 0 ? await loadRoutes(db, topics) : [];
  const names = new Set(
    open.flatMap(([, admission]) => ('launch' in admission ? [admission.launch.job] : [])),
  );
  const jobs = await catalog.load(db, [...names], [...new Set(routes.map((route) => route.jobId))]);
  const byName = new Map(jobs.map((job) => [job.name, job]));
  const byId = new Map(jobs.map((job) => [job.id, job]));

  const planned: Planned[] = [];
  for (const [index, admission] of open) {
    if ('event' in admission) {
      const { event } = admission;
      const id = newUuid();
      const stored = { id, correlationId: event.correlationId ?? toPublicId('evt', id), event };
      const { plans, refusals } = fanOut(stored, routes, byId);
      planned.push({ index, key: event.key, objectId: id, plans, event: { stored, refusals } });
      continue;
    }
    const { launch } = admission;
    const job = byName.get(launch.job);
    const run = job ? planRun(launch, job, null) : jobNotFound(launch.job);
    if (isPlan(run))
      planned.push({ index, key: launch.key, objectId: run.run.id, plans: [run], event: null });
    else outcomes.set(index, run);
  }
  return planned;
}
