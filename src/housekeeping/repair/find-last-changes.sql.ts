import type { Queryable } from '../../db/pool.ts';
import type { TaskStatus } from '../../domain/status.ts';
import type { LastChange } from './decide-places.ts';

interface Found {
  taskId: string;
  sequence: number;
  status: TaskStatus;
  attemptId: string | null;
  attemptNumber: number | null;
  /** ISO 8601. */
  at: string;
}

/**
 * Transactions get their place in the log before they wait for locks, so an object's later change can stand before its
 * earlier one; not further than the longest transaction.
 */
const longestTransactionMs = 600_000;
const entriesAPage = 20_000;

// From the end of the log towards its start: there is no index by task, because every write would pay for it and only
// a task that lost its place needs it.
const pageSql = `
with page as materialized (
  select c.* from runplane.change_log c where (c.xid, c.id) < ($1::xid8, $2::bigint) order by c.xid desc, c.id desc limit ${entriesAPage})
select (select count(*) from page)::int as looked, (select min(p.at) from page p) as oldest,
       f.xid::text as xid, f.id, (
         select json_agg(json_build_object('taskId', p.task_id, 'sequence', p.sequence, 'status', p.to_status, 'attemptId', p.attempt_id,
                                           'attemptNumber', p.attempt_number, 'at', p.at))
           from page p where p.task_id = any($3)) as found
  from (select p.xid, p.id from page p order by p.xid, p.id limit 1) f`;

/** The last changes of these tasks; a task that is not in what is kept of the log is missing. */
export async function findLastChanges(
  db: Queryable,
  taskIds: readonly string[],
): Promise<Map<string, LastChange>> {
  const found = new Map<string, Found>();
  // Below the largest that there are: 2^64 - 1 and 2^63 - 1.
  let before = { xid: '18446744073709551615', id: '9223372036854775807' };
  let enough = false;
  while (!enough) {
    const { rows } = await db.query<{
      looked: number;
      oldest: Date;
      xid: string;
      id: number;
      found: Found[] | null;
    }>({ name: 'last-changes', text: pageSql, values: [before.xid, before.id, taskIds] });
    const page = rows[0];
    if (!page) break;
    for (const change of page.found ?? []) {
      const known = found.get(change.taskId);
      if (!known || known.sequence < change.sequence) found.set(change.taskId, change);
    }
    before = { xid: page.xid, id: String(page.id) };
    const oldestFound = Math.min(...[...found.values()].map(({ at }) => Date.parse(at)));
    enough =
      page.looked < entriesAPage ||
      (found.size === taskIds.length && page.oldest.getTime() < oldestFound - longestTransactionMs);
  }
  return new Map([...found.values()].map((change) => [change.taskId, toLastChange(change)]));
}

const toLastChange = ({ status, sequence, attemptId, attemptNumber, at }: Found): LastChange => ({
  status,
  sequence,
  attempts: attemptNumber ?? 0,
  lost: status === 'PROCESSING' && attemptId !== null ? { attemptId, startedAt: new Date(at) } : null,
});
