import type { Database } from '../db/pool.ts';
import { type ListDefinition, readChildLists, readTraceList } from './list.ts';
import type { Page, PageArgs } from './page.ts';
import { readById, readRows } from './query.ts';
import type { Where } from './where.ts';

/** A materialization without its metadata. */
export interface MaterializationRow {
  id: string;
  assetId: string;
  partition: string | null;
  runId: string;
  taskId: string;
  attemptId: string;
  at: Date;
}

const columns = `
m.id, m.asset_id as "assetId", m.partition, m.run_id as "runId", m.task_id as "taskId", m.attempt_id as "attemptId", m.at`;
const from = 'runplane.materializations m';

const byIdSql = `select ${columns} from ${from} where m.id = any($1)`;
const metadataSql = 'select id, metadata from runplane.materializations where id = any($1)';
const latestSql = `
select x.* from unnest($1::uuid[]) k(id) cross join lateral (
  select ${columns} from ${from} where m.asset_id = k.id order by m.id desc limit 1) x`;

const key = [{ sql: 'm.id', type: 'uuid' }] as const;
const ofTask: ListDefinition = { name: 'materializations of task', columns, from, key, descending: false };
const ofTrace: ListDefinition = {
  ...ofTask,
  name: 'materializations of trace',
  from: '(select x.* from runplane.materializations x where x.correlation_id = parent.id offset 0) m',
  key: [{ sql: 'm.at', type: 'time' }, ...key],
};
const ofAsset: ListDefinition = { ...ofTask, name: 'materializations of asset', descending: true };
const inputs: ListDefinition = {
  ...ofTask,
  name: 'inputs of materialization',
  from: 'runplane.materialization_inputs i join runplane.materializations m on m.id = i.input_id',
};

export class MaterializationQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  byIds(ids: readonly string[]): Promise<Map<string, MaterializationRow>> {
    return readById(this.#db, 'materializations-by-id', byIdSql, ids);
  }

  metadata(ids: readonly string[]): Promise<Map<string, { id: string; metadata: unknown }>> {
    return readById(this.#db, 'materialization-metadata', metadataSql, ids);
  }

  /** The newest of each asset, by the asset's id. */
  async latestOfAssets(assetIds: readonly string[]): Promise<Map<string, MaterializationRow>> {
    const statement = { name: 'latest-materializations', text: latestSql, values: [assetIds] };
    const rows = await readRows<MaterializationRow>(this.#db, statement);
    return new Map(rows.map((row) => [row.assetId, row]));
  }

  ofTasks(taskIds: readonly string[], page: PageArgs): Promise<Map<string, Page<MaterializationRow>>> {
    return readChildLists(
      this.#db,
      { list: ofTask, conditions: (where) => where.and('m.task_id = parent.id') },
      taskIds,
      page,
    );
  }

  /** Newest first; of one partition or of all. */
  ofAssets(
    assetIds: readonly string[],
    partition: string | null,
    page: PageArgs,
  ): Promise<Map<string, Page<MaterializationRow>>> {
    const conditions = (where: Where): void => {
      where.and('m.asset_id = parent.id');
      where.equals('m.partition', partition);
    };
    return readChildLists(this.#db, { list: ofAsset, filter: { partition }, conditions }, assetIds, page);
  }

  /** What each was made from. */
  inputsOf(ids: readonly string[], page: PageArgs): Promise<Map<string, Page<MaterializationRow>>> {
    const conditions = (where: Where): void => where.and('i.materialization_id = parent.id');
    return readChildLists(this.#db, { list: inputs, conditions }, ids, page);
  }

  /** All that carry one correlation id, oldest first. */
  ofCorrelation(correlationId: string, page: PageArgs): Promise<Page<MaterializationRow>> {
    return readTraceList(this.#db, ofTrace, correlationId, page);
  }
}
