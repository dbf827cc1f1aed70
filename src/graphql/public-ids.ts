import { fromPublicId, type IdPrefix, toPublicId } from '../domain/ids.ts';
import { badUserInput } from './errors.ts';

/** UUIDs of public ids in a filter; one of another kind is refused. */
export function toUuids(
  prefix: IdPrefix,
  ids: readonly string[] | null | undefined,
  field: string,
): string[] | null {
  if (!ids) return null;
  return ids.map((id, i) => {
    const uuid = fromPublicId(prefix, id);
    if (uuid === null)
      throw badUserInput(`${field}[${i}]`, `${field}[${i}] is not the id of a ${kindNames[prefix]}.`);
    return uuid;
  });
}

const kindNames: Partial<Record<IdPrefix, string>> = { run: 'run', task: 'task', dlq: 'dead letter' };

/** An outcome whose existingId is the public one of what the key made. */
export const withPublicConflict = <Outcome extends { kind: string }>(
  prefix: IdPrefix,
  outcome: Outcome,
): Outcome =>
  outcome.kind === 'IdempotencyConflict' && 'existingId' in outcome && typeof outcome.existingId === 'string'
    ? { ...outcome, existingId: toPublicId(prefix, outcome.existingId) }
    : outcome;
