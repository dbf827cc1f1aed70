import type { Queryable } from '../db/pool.ts';
import { newUuid } from '../domain/ids.ts';
import type { Actor } from './types.ts';

export interface AuditEntry {
  actor: Actor;
  /** What was done, as noun.verb: "agent.save". */
  action: string;
  /** Name or public id of what it was done to. */
  target: string;
  /** The target before and after, as JSON; null where it did not exist. */
  before: object | null;
  after: object | null;
  reason?: string | null;
}

/** Appends one entry. The caller's transaction is the change's own, so that there is never the one without the other. */
export async function appendAudit(tx: Queryable, entry: AuditEntry): Promise<void> {
  const { actor, action, target, before, after, reason = null } = entry;
  await tx.query({
    text: `insert into runplane.audit_entries (id, actor, action, target, before, after, reason, request_id)
           values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    values: [newUuid(), actor.name, action, target, asJson(before), asJson(after), reason, actor.requestId],
  });
}

/** A value for a jsonb parameter: the driver would send arrays and strings as something else. */
export const asJson = (value: unknown): string | null => (value === null ? null : JSON.stringify(value));
