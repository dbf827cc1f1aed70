import type { Database } from '../../../src/db/pool.ts';

/** Tables that are written when somebody is heard of, refused or not, and whose turn a duty is. */
const notData = ['workers', 'duties', 'sessions'];

const install = [
  'create schema writes',
  `create table writes.seen (
     id bigint generated always as identity primary key, at_table text not null, row_hash bigint not null, change int not null)`,
  `create function writes.see() returns trigger language plpgsql as $$
   begin
     if old is not null then
       insert into writes.seen (at_table, row_hash, change) values (tg_table_name, hashtextextended(old::text, 0), -1);
     end if;
     if new is not null then
       insert into writes.seen (at_table, row_hash, change) values (tg_table_name, hashtextextended(new::text, 0), 1);
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

  /** The tables that have other rows than when this was last asked. */
  async sinceLast(): Promise<string[]> {
    const { rows } = await this.#db.query<{ table: string }>({
      text: `
with seen as (delete from writes.seen returning at_table, row_hash, change),
changed as (select at_table from seen group by at_table, row_hash having sum(change) <> 0)
select distinct at_table as "table" from changed order by 1`,
    });
    return rows.map(({ table }) => table);
  }
}
