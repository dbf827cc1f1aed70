import { ensureAssets } from '../db/ensure-assets.sql.ts';
import type { Queryable } from '../db/pool.ts';
import { newUuid } from '../domain/ids.ts';
import type { Json } from '../domain/json.ts';
import type { Materialization } from './parse-result.ts';

// Their correlation ids are locked, sorted: of two transactions that produce under the same one, the second links what
// it made with a snapshot that has what the first one made. They share a fixed number of locks, as many as Postgres
// reckons with for a transaction: a group of results takes no more, however many ids it has.
const materializeSql = `
with given as materialized (
  select m.*, t.run_id, r.correlation_id
    from json_to_recordset($1::json) as m(id uuid, task_id uuid, attempt_id uuid, asset_key text, partition text, metadata jsonb)
    join runplane.tasks t on t.id = m.task_id
    join runplane.runs r on r.id = t.run_id),
locked as materialized (
  select count(pg_advisory_xact_lock(hashtextextended('runplane.materialize', k.share))) from (
    select distinct hashtextextended(g.correlation_id, 5) & 63 as share from given g order by 1) k)
insert into runplane.materializations (id, asset_id, partition, run_id, task_id, attempt_id, correlation_id, metadata, at)
select g.id, a.id, g.partition, g.run_id, g.task_id, g.attempt_id, g.correlation_id, g.metadata -> 'value', runplane.clock()
  from given g join runplane.assets a on a.key = g.asset_key cross join locked
on conflict do nothing`;

// Inputs are the latest production of each asset that the step reads: of the same run, else of the same correlation id.
// Where there is none yet, the first that comes later: it finds here who waits for it. What retention is about to
// delete is none.
const linkSql = `
with reads as materialized (
  select m.id, m.correlation_id, m.asset_id as made, a.id as asset_id, i.id as input_id
    from runplane.materializations m
    join runplane.tasks t on t.id = m.task_id
    join runplane.runs r on r.id = t.run_id
    join runplane.job_versions v on v.job_id = r.job_id and v.version = r.job_version
    cross join lateral jsonb_array_elements(v.steps) s(step)
    cross join lateral jsonb_array_elements_text(s.step -> 'readsAssetKeys') k(key)
    join runplane.assets a on a.key = k.key
    left join lateral (
      select x.id from runplane.materializations x
       where x.correlation_id = m.correlation_id and x.asset_id = a.id and x.id <> m.id
       order by (x.run_id = m.run_id) desc, x.id desc limit 1) i on true
   where m.id = any($1) and s.step ->> 'name' = t.step),
awaiting as (
  insert into runplane.awaited_inputs (correlation_id, asset_id, materialization_id)
  select r.correlation_id, r.asset_id, r.id from reads r where r.input_id is null and r.asset_id <> r.made
  on conflict do nothing),
arrived as materialized (
  select distinct on (m.correlation_id, m.asset_id) m.correlation_id, m.asset_id, m.id
    from runplane.materializations m where m.id = any($1) order by m.correlation_id, m.asset_id, m.id desc),
awaited as materialized (
  select w.*, a.id as input_id from arrived a
    join runplane.awaited_inputs w on w.correlation_id = a.correlation_id and w.asset_id = a.asset_id),
-- Before what waits is deleted: retention deletes in this order, too.
kept as materialized (
  select x.id from runplane.materializations x
   where x.id = any(array(select r.input_id from reads r union all select w.materialization_id from awaited w)) for key share skip locked),
served as (
  delete from runplane.awaited_inputs w using awaited a join kept k on k.id = a.materialization_id
   where w.correlation_id = a.correlation_id and w.asset_id = a.asset_id and w.materialization_id = a.materialization_id
  returning w.materialization_id as id, a.input_id)
insert into runplane.materialization_inputs (materialization_id, input_id)
select r.id, r.input_id from reads r join kept k on k.id = r.input_id
 union
select s.id, s.input_id from served s
on conflict do nothing`;

export interface Produced {
  taskId: string;
  attemptId: string;
  materializations: readonly Materialization[];
}

interface MaterializationRow {
  id: string;
  task_id: string;
  attempt_id: string;
  asset_key: string;
  partition: string | null;
  metadata: { value: Json };
}

/** Records what completed attempts produced, with its lineage; the last that a transaction locks. */
export async function materialize(tx: Queryable, produced: readonly Produced[]): Promise<void> {
  const rows: MaterializationRow[] = produced.flatMap(({ taskId, attemptId, materializations }) =>
    materializations.map((m) => ({
      id: newUuid(),
      task_id: taskId,
      attempt_id: attemptId,
      asset_key: m.assetKey,
      partition: m.partition,
      metadata: { value: m.metadata },
    })),
  );
  if (rows.length === 0) return;
  await ensureAssets(
    tx,
    rows.map((row) => row.asset_key),
  );
  await tx.query({ name: 'materialize', text: materializeSql, values: [JSON.stringify(rows)] });
  await tx.query({ name: 'link-materializations', text: linkSql, values: [rows.map((row) => row.id)] });
}
