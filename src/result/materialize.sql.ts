import { ensureAssets } from '../db/ensure-assets.sql.ts';
import type { Queryable } from '../db/pool.ts';
import { newUuid } from '../domain/ids.ts';
import type { Json } from '../domain/json.ts';
import type { Materialization } from './parse-result.ts';

const materializeSql = `
insert into runplane.materializations (id, asset_id, partition, run_id, task_id, attempt_id, correlation_id, metadata, at)
select m.id, a.id, m.partition, t.run_id, t.id, m.attempt_id, r.correlation_id, m.metadata -> 'value', runplane.clock()
  from json_to_recordset($1::json) as m(id uuid, task_id uuid, attempt_id uuid, asset_key text, partition text, metadata jsonb)
  join runplane.assets a on a.key = m.asset_key
  join runplane.tasks t on t.id = m.task_id
  join runplane.runs r on r.id = t.run_id
on conflict do nothing`;

// Inputs are the latest production of each asset that the step reads: of the same run, else of the same correlation id.
const linkSql = `
insert into runplane.materialization_inputs (materialization_id, input_id)
select m.id, i.id
  from runplane.materializations m
  join runplane.tasks t on t.id = m.task_id
  join runplane.runs r on r.id = t.run_id
  join runplane.job_versions v on v.job_id = r.job_id and v.version = r.job_version
  cross join lateral jsonb_array_elements(v.steps) s(step)
  cross join lateral jsonb_array_elements_text(s.step -> 'readsAssetKeys') k(key)
  join runplane.assets a on a.key = k.key
  cross join lateral (
    select x.id from runplane.materializations x
     where x.correlation_id = m.correlation_id and x.asset_id = a.id and x.id <> m.id
     order by (x.run_id = m.run_id) desc, x.id desc limit 1) i
 where m.id = any($1) and s.step ->> 'name' = t.step
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

/** Records what completed attempts produced, with its lineage. */
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
