import { encodeCursor } from '../changelog/cursor.ts';
import type { Queryable } from '../db/pool.ts';
import { transaction } from '../db/transaction.ts';
import { orUnavailable } from '../db/unavailable.ts';
import { digest } from '../domain/digest.ts';
import { toPublicId } from '../domain/ids.ts';
import { limits } from '../domain/limits.ts';
import { type IdempotencyConflict, isInvalidInput, notFound, parsed } from '../domain/problems.ts';
import { TimeBudget } from '../domain/time-bound.ts';
import { type FanOut, fanOut, loadRoutes, routesOf, type StoredEvent } from '../intake/fan-out.ts';
import { findRemembered, keyName, remember } from '../intake/idempotency.ts';
import { inTime } from '../intake/in-time.ts';
import { findReplayedEvents } from '../intake/insert-events.sql.ts';
import { insertRuns } from '../intake/insert-runs.sql.ts';
import { JobCatalog } from '../intake/job-catalog.ts';
import {
  acceptEvent,
  type EventProgress,
  lockEvent,
  parseStoredEvent,
  readEvent,
  saveProgress,
} from '../intake/stored-events.sql.ts';
import type { ActionsContext } from './act.ts';
import { appendAudit } from './audit.ts';
import type { ReplayEventOutcome } from './repeat-types.ts';
import type { Actions, Actor } from './types.ts';

export const createEventReplay = (
  context: ActionsContext & { epoch: string },
): Pick<Actions, 'replayEvent'> => {
  const catalog = new JobCatalog();
  return {
    replayEvent: ({ eventId }, actor) => orUnavailable(replayEvent(context, catalog, eventId, actor)),
  };
};

/** Plans before it locks: templates and schemas can be slow, and what another one launches meanwhile is left out. */
async function replayEvent(
  { db, onCommit, epoch }: ActionsContext & { epoch: string },
  catalog: JobCatalog,
  id: string,
  actor: Actor,
): Promise<ReplayEventOutcome> {
  const missing = notFound('event', toPublicId('evt', id));
  const row = await readEvent(db, id);
  if (!row) return missing;
  const stored = parsed(() => parseStoredEvent(row));
  if (isInvalidInput(stored)) return stored;
  const routes = await loadRoutes(db, [stored.event.topic]);
  const jobs = await catalog.load(db, [], [...new Set(routes.map(({ jobId }) => jobId))]);
  const byId = new Map(jobs.map((job) => [job.id, job]));
  const open = routes.filter(({ name }) => !row.launchedRoutes.includes(name));
  const fan = inTime(new TimeBudget(limits.sharedMs, limits.hurriedMs), () => fanOut(stored, open, byId));
  if ('kind' in fan) return fan;
  for (const { run } of fan.plans) run.trace_context = row.traceContext ?? undefined;
  const outcome = await transaction(db, async (tx) => {
    const before = await lockEvent(tx, id);
    return before ? launchMissing(tx, stored, before, fan, epoch, actor) : missing;
  });
  onCommit();
  return outcome;
}

async function launchMissing(
  tx: Queryable,
  stored: StoredEvent,
  before: EventProgress,
  fan: FanOut,
  epoch: string,
  actor: Actor,
): Promise<ReplayEventOutcome> {
  const { id } = stored;
  const conflict = before.rejected ? await rememberKey(tx, stored) : null;
  if (conflict) return conflict;
  const launched = new Set(before.launchedRoutes);
  const plans = fan.plans.filter(({ run }) => run.route !== undefined && !launched.has(run.route));
  const refusals = fan.refusals.filter(({ route }) => !launched.has(route));
  const after = { refusals, launchedRoutes: [...before.launchedRoutes, ...routesOf(plans)] };
  const changed = before.rejected || plans.length > 0 || !digest(refusals).equals(digest(before.refusals));
  if (changed) {
    if (before.rejected) await acceptEvent(tx, stored);
    await saveProgress(tx, id, after);
    if (plans.length > 0) await insertRuns(tx, plans);
    await appendAudit(tx, {
      actor,
      action: 'event.replay',
      target: toPublicId('evt', id),
      before: told(before),
      after: told({ ...after, rejected: false }),
    });
  }
  const { runIds = [] } = (await findReplayedEvents(tx, [id])).get(id) ?? {};
  const cursor = encodeCursor(epoch, { xid: before.position, id: 0 });
  return { kind: 'PublishEventSuccess', eventId: id, runIds, refusals, replayed: plans.length === 0, cursor };
}

/** Names alone: why a route refused can quote the payload. */
const told = ({ rejected, launchedRoutes, refusals }: Omit<EventProgress, 'position'>): object => ({
  rejected,
  launched: launchedRoutes,
  refused: refusals.map(({ route }) => route),
});

/** A rejected event has not used its key yet; another one may have by now. */
async function rememberKey(
  tx: Queryable,
  { id, event: { key, topic } }: StoredEvent,
): Promise<IdempotencyConflict | null> {
  if (!key || (await remember(tx, [{ key, objectId: id, position: null }])).size === 0) return null;
  const other = (await findRemembered(tx, [key])).get(keyName(key));
  if (!other || other.objectId === id) return null;
  const message = `Another event of topic ${topic} was stored with the idempotency key of this one.`;
  return { kind: 'IdempotencyConflict', existingId: other.objectId, message };
}
