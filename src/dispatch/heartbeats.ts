import { GroupCommit } from '../db/group-commit.ts';
import type { Database, Queryable } from '../db/pool.ts';
import { transactionByKey } from '../db/transaction.ts';
import type { Json } from '../domain/json.ts';
import { bookUsage } from '../result/book-usage.sql.ts';
import type { ModelUsage } from '../result/parse-usage.ts';

/** A heartbeat whose token was checked. */
export interface Heartbeat {
  attemptId: string;
  progress: number | null;
  /** Null keeps the one that is stored. */
  checkpoint: { value: Json } | null;
  usage: readonly ModelUsage[];
}

export interface HeldLease {
  leaseSeconds: number;
  expiresAt: Date;
  /** Set when a cancel was requested: report before it. */
  cancelDeadline: Date | null;
}

// Locked in id order, so that heartbeats for the same leases by two replicas never wait in a circle. That a worker was
// heard of is written now and then, and by whoever comes first: nobody waits for it.
const extendSql = `
with now as materialized (select runplane.clock() as at),
locked as (
  select l.attempt_id, l.worker_id from runplane.leases l where l.attempt_id = any($1) order by l.attempt_id for update),
unwritten as materialized (
  select w.id from runplane.workers w
   where w.id = any(array(select l.worker_id from locked l)) and w.last_seen_at <= (select n.at from now n) - interval '10 s'
   order by w.id for no key update skip locked),
heard as (
  update runplane.workers w set last_seen_at = (select n.at from now n) where w.id = any(array(select u.id from unwritten u)))
update runplane.leases l set expires_at = (select at from now) + make_interval(secs => l.lease_seconds)
 where l.attempt_id = any(array(select attempt_id from locked))
returning l.attempt_id as "attemptId", l.lease_seconds as "leaseSeconds", l.expires_at as "expiresAt", l.cancel_deadline as "cancelDeadline"`;

const progressSql = `
insert into runplane.task_progress (task_id, progress, checkpoint)
select l.task_id, p.progress, p.checkpoint -> 'value'
  from json_to_recordset($1::json) as p(attempt_id uuid, progress float8, checkpoint jsonb)
  cross join lateral (select x.task_id from runplane.leases x where x.attempt_id = p.attempt_id offset 0) l
 order by l.task_id
on conflict (task_id) do update set
  progress = coalesce(excluded.progress, task_progress.progress),
  checkpoint = coalesce(excluded.checkpoint, task_progress.checkpoint)`;

/** Keeps leases alive. Heartbeats that arrive together share a transaction; a lease that is gone has no answer. */
export class Heartbeats {
  readonly #group: GroupCommit<Heartbeat, HeldLease | null>;

  constructor(db: Database) {
    this.#group = new GroupCommit({
      maxItems: 1000,
      keysOf: ({ attemptId }) => [attemptId],
      sizeOf: ({ checkpoint, usage }) => JSON.stringify([checkpoint, usage]).length,
      apply: (heartbeats) => transactionByKey(db, (tx) => extend(tx, heartbeats)),
    });
  }

  beat(heartbeat: Heartbeat): Promise<HeldLease | null> {
    return this.#group.submit(heartbeat);
  }
}

async function extend(tx: Queryable, heartbeats: readonly Heartbeat[]): Promise<(HeldLease | null)[]> {
  const { rows } = await tx.query<HeldLease & { attemptId: string }>({
    name: 'extend-leases',
    text: extendSql,
    values: [heartbeats.map(({ attemptId }) => attemptId)],
  });
  const held = new Map(rows.map(({ attemptId, ...lease }) => [attemptId, lease]));
  const told = heartbeats.filter(
    (h) => held.has(h.attemptId) && (h.progress !== null || h.checkpoint !== null),
  );
  if (told.length > 0) {
    const progress = told.map(({ attemptId, progress, checkpoint }) => ({
      attempt_id: attemptId,
      progress,
      checkpoint,
    }));
    await tx.query({ name: 'save-progress', text: progressSql, values: [JSON.stringify(progress)] });
  }
  // Also of attempts whose lease is gone: the money was spent.
  await bookUsage(tx, heartbeats);
  return heartbeats.map(({ attemptId }) => held.get(attemptId) ?? null);
}
