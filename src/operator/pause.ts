import { transaction } from '../db/transaction.ts';
import { isInvalidInput, notFound, parsed } from '../domain/problems.ts';
import { parseName } from '../domain/text.ts';
import { appendAudit } from './audit.ts';
import { parseOptionalText } from './parse-fields.ts';
import { lockByName, lockClaims, readRow } from './rows.ts';
import type { SaveContext } from './save.ts';
import type { Actor, PauseInput, SaveOutcome } from './types.ts';

/**
 * Pauses or resumes: nothing of a paused queue or agent is claimed once this is committed, what runs goes on. Claims lock
 * the agent's row themselves.
 */
export async function setPaused<Kind extends string>(
  context: SaveContext,
  noun: 'queue' | 'agent',
  success: Kind,
  paused: boolean,
  input: PauseInput,
  actor: Actor,
): Promise<SaveOutcome<Kind>> {
  const request = parsed(() => ({
    name: parseName(input.name, 'name'),
    reason: parseOptionalText(input.reason, 'reason'),
  }));
  if (isInvalidInput(request)) return request;
  const { name, reason } = request;
  const table = `runplane.${noun}s`;
  const outcome = await transaction(context.db, async (tx) => {
    if (noun === 'queue') await lockClaims(tx, noun, name);
    const stored = await lockByName(tx, noun, name);
    if (!stored) return null;
    const before = await readRow<{ paused: boolean }>(
      tx,
      `select paused from ${table} where id = $1`,
      stored.id,
    );
    if (before.paused === paused) return { ...stored, changed: false };
    const version = stored.version + 1;
    await tx.query({
      text: `update ${table} set paused = $2, version = $3, updated_at = runplane.clock() where id = $1`,
      values: [stored.id, paused, version],
    });
    await appendAudit(tx, {
      actor,
      action: `${noun}.${paused ? 'pause' : 'resume'}`,
      target: name,
      before: { ...before, version: stored.version },
      after: { paused, version },
      reason,
    });
    return { id: stored.id, version, changed: true };
  });
  if (!outcome) return notFound(noun, name);
  if (outcome.changed) context.onCommit();
  return { kind: success, id: outcome.id, name, version: outcome.version };
}
