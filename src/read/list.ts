import type { Queryable } from '../db/pool.ts';
import { decodeCursor, encodeCursor, fingerprint, type KeyType } from './cursor.ts';
import { type Page, type PageArgs, type PageRequest, parsePage } from './page.ts';
import { readRows } from './query.ts';
import { Where } from './where.ts';

export interface KeyColumn {
  sql: string;
  type: KeyType;
}

/** A list that can be read page by page. Its key orders the rows completely, so its last column is unique. */
export interface ListDefinition {
  /** Names list and order in cursors. */
  name: string;
  columns: string;
  /** CTEs that from and the conditions need. */
  with?: string;
  /** In a list of children, parent.id is the UUID of the one whose children they are; or what else parents says. */
  from: string;
  parents?: 'uuid' | 'text';
  key: readonly KeyColumn[];
  descending: boolean;
}

export interface ListQuestion {
  list: ListDefinition;
  /** As the client gave it; a cursor works only with the same. */
  filter?: unknown;
  conditions?: (where: Where) => void;
}

type Listed<Row> = Row & { parentId: string | null; cursorKey: string[]; place: number };

/** A page of a list, by keyset: it costs the same on every page, and rows that come or go meanwhile shift nothing. */
export async function readList<Row extends object>(
  db: Queryable,
  question: ListQuestion,
  args: PageArgs,
): Promise<Page<Row>> {
  const pages = await readPages<Row>(db, question, null, parsePage(args));
  return pages.get('') ?? emptyPage();
}

/** The same page of the lists of several parents, in one statement. With a cursor there can be only one parent. */
export async function readChildLists<Row extends object>(
  db: Queryable,
  question: ListQuestion,
  parents: readonly string[],
  args: PageArgs,
): Promise<Map<string, Page<Row>>> {
  return readPages<Row>(db, question, parents, parsePage(args));
}

async function readPages<Row extends object>(
  db: Queryable,
  question: ListQuestion,
  parents: readonly string[] | null,
  request: PageRequest,
): Promise<Map<string, Page<Row>>> {
  const { list } = question;
  const places = new Places(db, question, parents, request);
  const rows = await readRows<Listed<Row>>(db, places.pageStatement());
  const groups = new Map<string, Listed<Row>[]>((parents ?? ['']).map((parent) => [parent, []]));
  for (const row of rows) groups.get(row.parentId ?? '')?.push(row);
  return new Map(
    [...groups].map(([parent, found]) => {
      const of = fingerprint(list.name, parent === '' ? null : parent, question.filter);
      const more = found.length > request.limit;
      const kept = found.slice(0, request.limit);
      if (request.backward) kept.reverse();
      const edges = kept.map(({ parentId: _, cursorKey, place: __, ...node }) => ({
        cursor: encodeCursor(of, cursorKey),
        node: node as unknown as Row,
      }));
      const ahead = async (): Promise<boolean> =>
        more || places.exists(request.backward ? 'after' : 'before');
      const behind = async (): Promise<boolean> => places.exists(request.backward ? 'before' : 'after');
      return [
        parent,
        {
          edges,
          hasNextPage: request.backward ? behind : ahead,
          hasPreviousPage: request.backward ? ahead : behind,
        },
      ];
    }),
  );
}

/** The statements of one page: its rows, and whether there are rows outside of its bounds. */
class Places {
  readonly #db: Queryable;
  readonly #question: ListQuestion;
  readonly #parents: readonly string[] | null;
  readonly #request: PageRequest;
  readonly #bounds: { after: string[] | null; before: string[] | null };

  constructor(
    db: Queryable,
    question: ListQuestion,
    parents: readonly string[] | null,
    request: PageRequest,
  ) {
    this.#db = db;
    this.#question = question;
    this.#parents = parents;
    this.#request = request;
    this.#bounds = { after: this.#decode('after'), before: this.#decode('before') };
  }

  pageStatement(): { text: string; values: unknown[] } {
    const { list } = this.#question;
    const { limit, backward } = this.#request;
    const where = new Where();
    const source = this.#source(where);
    if (this.#bounds.after) where.and(this.#beyond(where, this.#bounds.after, list.descending ? '<' : '>'));
    if (this.#bounds.before) where.and(this.#beyond(where, this.#bounds.before, list.descending ? '>' : '<'));
    const direction = list.descending === backward ? 'asc' : 'desc';
    const order = list.key.map(({ sql }) => `${sql} ${direction}`).join(', ');
    const key = list.key.map((column) => keyText(column)).join(', ');
    const text = `${withOf(list)}
select parent.id as "parentId", x.* from ${source} cross join lateral (
  select y.*, row_number() over () as place from (
    select ${list.columns}, array[${key}] as "cursorKey" from ${list.from} where ${where.toString()}
     order by ${order} limit ${limit + 1}) y) x
 order by parent.id, x.place`;
    return { text, values: where.values };
  }

  /** Whether there are rows at a bound or beyond it: what the page left out on that side. */
  async exists(side: 'after' | 'before'): Promise<boolean> {
    const bound = this.#bounds[side];
    if (bound === null) return false;
    const { list } = this.#question;
    const where = new Where();
    const source = this.#source(where);
    where.and(this.#beyond(where, bound, (side === 'after') === list.descending ? '>=' : '<='));
    const text = `${withOf(list)}
select exists (select from ${source} cross join lateral (
  select from ${list.from} where ${where.toString()} limit 1) x) as found`;
    const [row] = await readRows<{ found: boolean }>(this.#db, { text, values: where.values });
    return row?.found ?? false;
  }

  #source(where: Where): string {
    const source =
      this.#parents === null
        ? '(select null::uuid) parent(id)'
        : `unnest(${where.param(this.#parents)}::${this.#question.list.parents ?? 'uuid'}[]) parent(id)`;
    this.#question.conditions?.(where);
    return source;
  }

  #decode(side: 'after' | 'before'): string[] | null {
    const cursor = this.#request[side];
    if (cursor === null) return null;
    const { list, filter } = this.#question;
    const of = fingerprint(list.name, this.#parents?.[0] ?? null, filter);
    return decodeCursor(
      cursor,
      of,
      list.key.map(({ type }) => type),
      side,
    );
  }

  #beyond(where: Where, bound: readonly string[], operator: string): string {
    const { key } = this.#question.list;
    const columns = key.map(({ sql }) => sql).join(', ');
    const values = key.map(({ type }, i) => keyValue(type, where.param(bound[i]))).join(', ');
    return `(${columns}) ${operator} (${values})`;
  }
}

const withOf = (list: ListDefinition): string => (list.with === undefined ? '' : `with ${list.with}`);

const keyText = ({ sql, type }: KeyColumn): string =>
  type === 'time' ? `(extract(epoch from ${sql}) * 1000)::bigint::text` : `(${sql})::text`;

const sqlTypes = { uuid: 'uuid', integer: 'bigint', decimal: 'numeric', text: 'text' } as const;

const keyValue = (type: KeyType, parameter: string): string =>
  type === 'time'
    ? `timestamptz 'epoch' + ${parameter}::bigint * interval '1 millisecond'`
    : `${parameter}::${sqlTypes[type]}`;

/** The rows that carry one correlation id: the parent is the id itself, and its rows are looked up before all else. */
export async function readTraceList<Row extends object>(
  db: Queryable,
  list: ListDefinition,
  correlationId: string,
  args: PageArgs,
): Promise<Page<Row>> {
  const question = { list: { ...list, parents: 'text' } as const };
  const pages = await readChildLists<Row>(db, question, [correlationId], args);
  return pages.get(correlationId) ?? emptyPage();
}

const emptyPage = <Row>(): Page<Row> => ({
  edges: [],
  hasNextPage: async () => false,
  hasPreviousPage: async () => false,
});
