import type { Queryable } from '../db/pool.ts';
import { transaction } from '../db/transaction.ts';
import { isInvalidInput, notFound, parsed } from '../domain/problems.ts';
import { parseName } from '../domain/text.ts';
import { appendAudit } from './audit.ts';
import { lockByName } from './rows.ts';
import type { SaveContext } from './save.ts';
import { routeKind } from './save-route.ts';
import type { Actor, DeleteOutcome, NameInput } from './types.ts';

/** The runs that the route launched stay. A name that no route can have is one that there is no route of. */
export async function deleteRoute(
  context: SaveContext,
  input: NameInput,
  actor: Actor,
): Promise<DeleteOutcome> {
  const name = parsed(() => parseName(input.name, 'name'));
  if (isInvalidInput(name)) return notFound('route', input.name);
  const id = await transaction(context.db, (tx) => deleteRouteIn(tx, name, actor));
  if (id === null) return notFound('route', name);
  context.onCommit();
  return { kind: 'DeleteSuccess', id };
}

/** The deletion within a transaction that may have others; null: there is no such route. */
export async function deleteRouteIn(
  tx: Queryable,
  name: string,
  actor: Actor,
  reason: string | null = null,
): Promise<string | null> {
  const stored = await lockByName(tx, 'route', name);
  if (!stored) return null;
  const before = { ...(await routeKind.read(tx, stored.id)), version: stored.version };
  await tx.query({ text: 'delete from runplane.routes where id = $1', values: [stored.id] });
  await appendAudit(tx, { actor, action: 'route.delete', target: name, before, after: null, reason });
  return stored.id;
}
