import type { Database, Queryable } from '../../db/pool.ts';
import { transactionByKey } from '../../db/transaction.ts';
import { nilUuid } from '../../domain/ids.ts';
import { deleteEventsOfRuns } from './delete-attempt-events.sql.ts';
import { batchRows, keptWithKey, type OldPage, oldBound } from './old-pages.ts';

const runsAPage = 500;
/** A run goes with its row, the record of its idempotency key and that of its debounce key. */
const rowsARun = 3;
const taskRows = batchRows - runsAPage * rowsARun;

/** Of r: that it ended long enough ago, and that nothing which is kept refers to it. */
const isDeletable = `
r.finished_at < n.kept_since and (coalesce(r.idempotency_key, r.debounce_key) is null or r.finished_at < n.keys_kept_since)
and not exists (select from runplane.runs c where c.parent_run_id = r.id and c.finished_at is null)
and not exists (
  select from runplane.tasks t join runplane.dead_letters d on d.task_id = t.id
   where t.run_id = r.id and t.state = 'FAILED' and d.replayed_at is null)
and not exists (
  select from runplane.tasks t join runplane.materializations m on m.task_id = t.id
    join runplane.materialization_inputs i on i.input_id = m.id
    join runplane.materializations o on o.id = i.materialization_id
    join runplane.runs u on u.id = o.run_id
   where t.run_id = r.id and u.finished_at is null)`;

const nowSql = `
select c.at - make_interval(days => $1) as kept_since, c.at - ${keptWithKey} as keys_kept_since from (select runplane.clock() as at) c`;

const pageSql = `
with now as materialized (${nowSql}), bound as materialized (select ${oldBound('$1')} as id),
page as materialized (
  select r.id, r.finished_at, r.idempotency_key, r.debounce_key from runplane.runs r
   where r.id > $2 and r.id < (select b.id from bound b) order by r.id limit ${runsAPage})
select array(select r.id from page r cross join now n where ${isDeletable} order by r.id) as deletable,
       (select count(*) from page)::int as looked, (select p.id from page p order by p.id desc limit 1) as last`;

// What was seen in the page is asked again under the lock, in a statement that sees what committed before it.
const lockSql = `
select r.id from runplane.runs r where r.id = any($1) order by r.id for update skip locked`;
const stillSql = `
with now as materialized (${nowSql}) select r.id from runplane.runs r cross join now n where r.id = any($2) and ${isDeletable}`;

// The first runs that fill a batch with all that belongs to them; of a run that is larger, its first tasks.
const chooseSql = `
with weighed as materialized (
  select t.run_id, t.id, (1 + 2 * (select count(*) from runplane.attempts a where a.task_id = t.id)
       + (select count(*) from runplane.usage u where u.task_id = t.id)
       + (select count(*) from runplane.task_progress p where p.task_id = t.id)
       + (select count(*) from runplane.dead_letters d where d.task_id = t.id)
       + (select coalesce(sum(1 + (select count(*) from runplane.materialization_inputs i where i.materialization_id = m.id)
                                + (select count(*) from runplane.materialization_inputs i where i.input_id = m.id)
                                + (select count(*) from runplane.awaited_inputs w where w.materialization_id = m.id)), 0)
            from runplane.materializations m where m.task_id = t.id)) as weight
    from (select t.run_id, t.id from runplane.tasks t where t.run_id = any($1) order by t.run_id, t.id limit ${taskRows + 1}) t),
summed as materialized (
  select w.run_id, w.id, sum(w.weight) over (order by w.run_id, w.id) as weight, row_number() over (order by w.run_id, w.id) as n
    from weighed w),
whole as materialized (select s.run_id from summed s group by s.run_id having max(s.weight) <= ${taskRows})
select array(select s.id from summed s where s.run_id = any(array(select w.run_id from whole w))) as whole,
       array(select s.id from summed s where s.weight <= ${taskRows}) as part, (select s.id from summed s where s.n = 1) as first`;

const trimUsageSql = `
delete from runplane.usage where id = any(array(select u.id from runplane.usage u where u.task_id = $1 limit ${taskRows}))`;

// What is appended to their attempts meanwhile waits, and finds no task then.
const lockTasksSql = `
select t.id from runplane.tasks t where t.id = any($1) order by t.id for update`;

const deleteTasksSql = `
with usage as (delete from runplane.usage where task_id = any($1)),
attempts as (delete from runplane.attempts where task_id = any($1)),
event_counts as (
  delete from runplane.attempt_event_counts where attempt_id in (select a.id from runplane.attempts a where a.task_id = any($1))),
progress as (delete from runplane.task_progress where task_id = any($1)),
materializations as (delete from runplane.materializations where task_id = any($1)),
letters as (delete from runplane.dead_letters where task_id = any($1)),
events as (delete from runplane.attempt_events where task_id = any($1)),
tasks as (delete from runplane.tasks where id = any($1) returning run_id)
update runplane.runs r set total_tasks = r.total_tasks - c.gone
  from (select t.run_id, count(*)::int as gone from tasks t group by t.run_id) c where r.id = c.run_id`;

// Launches that were debounced into one run can have had as many keys as there were launches.
const deleteKeysSql = `
delete from runplane.idempotency_records i using (
  select k.kind, k.scope, k.key_hash from runplane.idempotency_records k where k.debounced and k.object_id = any($1) limit ${batchRows}) k
 where i.kind = k.kind and i.scope = k.scope and i.key_hash = k.key_hash`;

// What is left of a run is counted no more; nobody waits in a run that is over.
const deleteStepsSql = `
with gone as (
  delete from runplane.run_steps s using (
    select k.run_id, k.step from runplane.run_steps k where k.run_id = any($1) limit ${batchRows - runsAPage}) k
   where s.run_id = k.run_id and s.step = k.step
  returning s.run_id)
update runplane.runs r set has_spawned = false where r.id in (select g.run_id from gone g)`;

const deleteRunsSql = `
with gone as (
  delete from runplane.runs r where r.id = any($1) and not exists (select from runplane.tasks t where t.run_id = r.id)
  returning r.id, r.job_id, r.idempotency_key, r.debounce_key),
debounces as (
  delete from runplane.debounces d using gone g
   where d.job_id = g.job_id and d.debounce_key = g.debounce_key and d.run_id = g.id),
keys as (
  delete from runplane.idempotency_records i using gone g
   where i.kind = 'launch' and i.scope = '' and i.key_hash = sha256(convert_to(g.idempotency_key, 'UTF8')) and i.object_id = g.id)
select count(*)::int as runs from gone`;

/** The next runs that may be deleted. */
export async function findOldRuns(db: Database, keptDays: number, after: string | null): Promise<OldPage> {
  const { rows } = await transactionByKey(db, (tx) =>
    tx.query<{ deletable: string[]; looked: number; last: string | null }>({
      name: 'old-runs',
      text: pageSql,
      values: [keptDays, after ?? nilUuid],
    }),
  );
  const { deletable = [], looked = 0, last = null } = rows[0] ?? {};
  return { ids: deletable, after: looked === runsAPage ? last : null };
}

export interface DeletedRuns {
  runs: number;
  /** Nothing of them is left that could be deleted now. */
  all: boolean;
}

/**
 * Deletes a batch of these runs, with all that belongs to them. A run of more tasks than a batch holds goes in several:
 * its counters follow, so that it is whole at each step.
 */
export function deleteOldRuns(
  db: Database,
  keptDays: number,
  runIds: readonly string[],
): Promise<DeletedRuns> {
  return transactionByKey(db, async (tx) => {
    const locked = await ids(tx, 'lock-old-runs', lockSql, [runIds]);
    const deletable = await ids(tx, 'still-old-runs', stillSql, [keptDays, locked]);
    if (deletable.length === 0) return { runs: 0, all: true };
    // First, since they are many. What is appended since goes with its task.
    if ((await deleteEventsOfRuns(tx, deletable)) > 0) return { runs: 0, all: false };
    const keys = await tx.query({ name: 'delete-old-keys', text: deleteKeysSql, values: [deletable] });
    if (keys.rowCount) return { runs: 0, all: false };
    const steps = await tx.query({ name: 'delete-old-steps', text: deleteStepsSql, values: [deletable] });
    if (steps.rowCount) return { runs: 0, all: false };
    const { rows } = await tx.query<{ whole: string[]; part: string[]; first: string | null }>({
      name: 'choose-old-tasks',
      text: chooseSql,
      values: [deletable],
    });
    const { whole = [], part = [], first = null } = rows[0] ?? {};
    const chosen = whole.length > 0 ? whole : part;
    const tasks = chosen.length > 0 || first === null ? chosen : await trimmed(tx, first);
    if (tasks === null) return { runs: 0, all: false };
    await tx.query({ name: 'lock-old-tasks', text: lockTasksSql, values: [tasks] });
    await tx.query({ name: 'delete-old-tasks', text: deleteTasksSql, values: [tasks] });
    const gone = await tx.query<{ runs: number }>({
      name: 'delete-old-runs',
      text: deleteRunsSql,
      values: [deletable],
    });
    const runs = gone.rows[0]?.runs ?? 0;
    return { runs, all: runs === deletable.length };
  });
}

/** A task that is more than a batch by itself: first its usage goes, which can be without number. */
async function trimmed(tx: Queryable, taskId: string): Promise<string[] | null> {
  const { rowCount } = await tx.query({ name: 'trim-old-usage', text: trimUsageSql, values: [taskId] });
  return rowCount === 0 ? [taskId] : null;
}

async function ids(tx: Queryable, name: string, text: string, values: unknown[]): Promise<string[]> {
  const { rows } = await tx.query<{ id: string }>({ name, text, values });
  return rows.map(({ id }) => id);
}
