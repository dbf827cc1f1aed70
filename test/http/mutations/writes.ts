import type { Database } from '../../../src/db/pool.ts';

/** Tables that are written when somebody is heard of, refused or not, and whose turn a duty is. */
const notData = ['workers', 'duties', 'sessions'];
/** Columns that say whose a row is. */
const ownerColumns = [
  'id',
  'run_id',
  'parent_run_id',
  'task_id',
  'attempt_id',
  'event_id',
  'object_id',
  'materialization_id',
  'key',
  // Who ends lets the next of its serial key be ready.
  'serial_key',
];

const install = [
  'create schema writes',
  `create table writes.seen (
     id bigint generated always as identity primary key, at_table text not null, row_hash bigint not null, change int not null,
     owners text[] not null)`,
  `create function writes.owners(one jsonb) returns text[] language sql immutable as $$
     select coalesce(array_agg(value), '{}') from jsonb_each_text(one)
      where key = any('{${ownerColumns.join(',')}}') and value is not null
   $$`,
  `create function writes.see() returns trigger language plpgsql as $$
   begin
     if tg_op <> 'INSERT' then
       insert into writes.seen (at_table, row_hash, change, owners)
       values (tg_table_name, hashtextextended(old::text, 0), -1, writes.owners(to_jsonb(old)));
     end if;
     if tg_op <> 'DELETE' then
       insert into writes.seen (at_table, row_hash, change, owners)
       values (tg_table_name, hashtextextended(new::text, 0), 1, writes.owners(to_jsonb(new)));
     end if;
     return null;
   end $$`,
  `do $$
   declare t regclass;
   begin
     for t in select c.oid::regclass from pg_class c
       where c.relnamespace = 'runplane'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
         and c.relname <> all(array[${notData.map((table) => `'${table}'`).join(', ')}])
     loop
       execute format('create trigger writes after insert or update or delete on %s for each row execute function writes.see()', t);
     end loop;
   end $$`,
];

/** A row that came, went or changed. */
export interface Write {
  table: string;
  /** Ids and keys of what it is about. */
  owners: string[];
  /** It is not there any more. */
  isGone: boolean;
}

/** Says what was written to the tables of the product and committed: what is rolled back leaves no trace. */
export class Writes {
  readonly #db: Database;

  private constructor(db: Database) {
    this.#db = db;
  }

  static async watch(db: Database): Promise<Writes> {
    for (const text of install) await db.query({ text });
    return new Writes(db);
  }

  /** The rows that are others than when this was last asked. */
  async sinceLast(): Promise<Write[]> {
    const { rows } = await this.#db.query<Write & Record<string, unknown>>({
      text: `
with seen as (delete from writes.seen returning at_table, row_hash, change, owners)
select at_table as "table", (array_agg(to_jsonb(owners)))[1] as owners, sum(change) < 0 as "isGone" from seen
 group by at_table, row_hash having sum(change) <> 0 order by 1`,
    });
    return rows;
  }
}

/** What all that runs share, of which nobody can say for whom it was written: turns, use of throttles, what was learned. */
const shared = new Set([
  'agent_estimates',
  'customer_turns',
  'lane_turns',
  'scan_starts',
  'settled_attempts',
  'throttle_heads',
  'throttle_use',
  // Errors of providers hold them back.
  'throttles',
]);

/** Rows that belong to none of these, nor to what belongs to them. */
export function strayWrites(written: readonly Write[], owners: Iterable<string>): Write[] {
  const known = new Set(owners);
  // Whoever launches forgets some keys whose runs wait no more.
  let left = written.filter(({ table, isGone }) => !shared.has(table) && !(table === 'debounces' && isGone));
  for (;;) {
    const next = left.filter((write) => !write.owners.some((owner) => known.has(owner)));
    if (next.length === left.length) return next;
    // What is written for a run makes its tasks known, and so on. Places in logs are no ids: they would meet by chance.
    for (const write of left)
      if (!next.includes(write)) for (const owner of write.owners) if (!/^\d+$/.test(owner)) known.add(owner);
    left = next;
  }
}
