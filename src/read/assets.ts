import type { Database } from '../db/pool.ts';
import { limits } from '../domain/limits.ts';
import { ReadError } from './errors.ts';
import { type ListDefinition, readList } from './list.ts';
import type { Page, PageArgs } from './page.ts';
import { groupRows, readById, readRows } from './query.ts';

export interface AssetRow {
  id: string;
  key: string;
  description: string | null;
}

export type LineageDirection = 'UPSTREAM' | 'DOWNSTREAM' | 'BOTH';

export interface AssetEdge {
  /** UUIDs of assets. */
  upstream: string;
  downstream: string;
  /** Steps from the asset that was asked about, from 1. */
  depth: number;
}

const columns = 's.id, s.key, s.description';
const byIdSql = `select ${columns} from runplane.assets s where s.id = any($1)`;
const byKeySql = `select ${columns} from runplane.assets s where s.key = $1`;

// A step that makes an asset makes it from the assets that it reads; jobs say so in their current version.
const edges = `edges as materialized (
  select distinct u.id as upstream, d.id as downstream
    from runplane.jobs j
    join runplane.job_versions v on v.job_id = j.id and v.version = j.version
    cross join lateral jsonb_array_elements(v.steps) step
    cross join lateral jsonb_array_elements_text(step -> 'readsAssetKeys') r(key)
    join runplane.assets u on u.key = r.key
    join runplane.assets d on d.key = step ->> 'assetKey')`;

const neighboursSql = (known: string, wanted: string): string => `
with ${edges}
select ${columns}, e.${known} as known from edges e join runplane.assets s on s.id = e.${wanted}
 where e.${known} = any($1) order by s.key`;
const upstreamSql = neighboursSql('downstream', 'upstream');
const downstreamSql = neighboursSql('upstream', 'downstream');

/**
 * Edges reached up or down, each once, with the length of the shortest way to it. A cycle ends where it closes: an
 * edge is gone on from at each depth once, and at no depth past the limit.
 */
const lineageSql = `
with recursive ${edges},
reached as (
  select g.way, case g.way when 'UPSTREAM' then e.upstream else e.downstream end as far, e.upstream, e.downstream, 1 as depth
    from unnest($3::text[]) g(way) join edges e on case g.way when 'UPSTREAM' then e.downstream else e.upstream end = $1
  union
  select r.way, case r.way when 'UPSTREAM' then e.upstream else e.downstream end, e.upstream, e.downstream, r.depth + 1
    from reached r join edges e on case r.way when 'UPSTREAM' then e.downstream else e.upstream end = r.far
   where r.depth < $2)
select upstream, downstream, min(depth) as depth from reached group by 1, 2 order by 3, 1, 2`;

const list: ListDefinition = {
  name: 'assets',
  columns,
  from: 'runplane.assets s',
  key: [{ sql: 's.id', type: 'uuid' }],
  descending: false,
};

export class AssetQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  byIds(ids: readonly string[]): Promise<Map<string, AssetRow>> {
    return readById(this.#db, 'assets-by-id', byIdSql, ids);
  }

  async byKey(key: string): Promise<AssetRow | null> {
    const rows = await readRows<AssetRow>(this.#db, { name: 'asset-by-key', text: byKeySql, values: [key] });
    return rows[0] ?? null;
  }

  upstreamOf(ids: readonly string[]): Promise<Map<string, AssetRow[]>> {
    return this.#neighbours('upstream-assets', upstreamSql, ids);
  }

  downstreamOf(ids: readonly string[]): Promise<Map<string, AssetRow[]>> {
    return this.#neighbours('downstream-assets', downstreamSql, ids);
  }

  async #neighbours(name: string, text: string, ids: readonly string[]): Promise<Map<string, AssetRow[]>> {
    const rows = await readRows<AssetRow & { known: string }>(this.#db, { name, text, values: [ids] });
    return groupRows<AssetRow & { known: string }>(ids, rows, (row) => row.known);
  }

  /** Edges up, down or both ways, nearest first. */
  async lineage(id: string, direction: LineageDirection, depth: number): Promise<AssetEdge[]> {
    if (depth < 1 || depth > limits.lineageDepth) {
      throw new ReadError('BAD_USER_INPUT', `depth must be from 1 to ${limits.lineageDepth}.`, 'depth');
    }
    const ways = direction === 'BOTH' ? ['UPSTREAM', 'DOWNSTREAM'] : [direction];
    return readRows<AssetEdge>(this.#db, { name: 'lineage', text: lineageSql, values: [id, depth, ways] });
  }

  async list(page: PageArgs): Promise<Page<AssetRow>> {
    return readList(this.#db, { list }, page);
  }
}
