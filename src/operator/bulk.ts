import { type Database, planByKey, type Queryable } from '../db/pool.ts';
import { transaction } from '../db/transaction.ts';
import { limits } from '../domain/limits.ts';
import { InvalidInputError, isInvalidInput, parsed } from '../domain/problems.ts';
import { parseInteger } from '../domain/scalars.ts';
import { Where } from '../read/where.ts';
import { appendAudit } from './audit.ts';
import { parseOptionalText } from './parse-fields.ts';
import type { Actor, BulkInput, BulkOutcome } from './types.ts';

export interface BulkAction {
  from: string;
  /** The column of the ids; their order is the order of creation. */
  id: string;
  /** Adds the filter and what the action demands of an object. */
  where: (where: Where) => void;
  /** The alias of the rows to lock while they are chosen, where nothing else is locked to change them. */
  lock?: string;
  /** Changes the objects with these ids; answers those that it changed. */
  change: (tx: Queryable, ids: string[], reason: string | null) => Promise<readonly string[]>;
}

/** One action on everything that a filter matches, oldest first, in one transaction with one audit entry. */
export async function bulk(
  { db, onCommit }: { db: Database; onCommit: () => void },
  action: string,
  input: BulkInput<object>,
  actor: Actor,
  { from, id, where, lock, change }: BulkAction,
): Promise<BulkOutcome> {
  const request = parsed(() => {
    if (Object.values(input.filter).every((value) => value == null)) {
      throw new InvalidInputError('filter', 'The filter is empty; name at least one condition.');
    }
    return {
      reason: parseOptionalText(input.reason, 'reason'),
      limit: input.limit == null ? limits.bulk : parseInteger(input.limit, 'limit', 1, limits.bulk),
    };
  });
  if (isInvalidInput(request)) return request;
  const { reason, limit } = request;
  const conditions = new Where();
  where(conditions);
  const text = `select ${id} as id from ${from} where ${conditions.toString()} order by ${id} limit ${conditions.param(limit + 1)}${lock && !input.dryRun ? ` for update of ${lock}` : ''}`;
  const outcome = await transaction<BulkOutcome>(db, async (tx) => {
    const { rows } = await tx.query<{ id: string }>({ text, values: conditions.values });
    const ids = rows.slice(0, limit).map((row) => row.id);
    if (input.dryRun || ids.length === 0)
      return { kind: 'BulkSuccess', matched: ids.length, changed: 0, hasMore: rows.length > limit };
    await tx.query({ text: planByKey });
    const changed = await change(tx, ids, reason);
    if (changed.length > 0) {
      const after = { filter: input.filter, changed: changed.length };
      await appendAudit(tx, {
        actor,
        action: `${action}.bulk`,
        target: 'filter',
        before: null,
        after,
        reason,
      });
    }
    return {
      kind: 'BulkSuccess',
      matched: ids.length,
      changed: changed.length,
      hasMore: rows.length > limit,
    };
  });
  onCommit();
  return outcome;
}
