import { type IdPrefix, toPublicId } from '../domain/ids.ts';
import { builder } from './builder.ts';
import { ForbiddenRef, IllegalStateRef, NotFoundRef } from './problems.ts';

interface Deleted {
  kind: 'DeleteSuccess';
  id: string;
}

const DeleteSuccessRef = builder.objectRef<Deleted>('DeleteSuccess').implement({
  description: 'It is gone.',
  fields: (t) => ({ id: t.exposeID('id', { description: 'Of what was deleted.' }) }),
});

export const DeleteResult = builder.unionType('DeleteResult', {
  description: 'What became of deleting something.',
  types: [DeleteSuccessRef, NotFoundRef, IllegalStateRef, ForbiddenRef],
  resolveType: ({ kind }) => kind,
});

/** An outcome with the public id of what was deleted. */
export const withPublicDeleted = <Outcome extends { kind: string }>(
  prefix: IdPrefix,
  outcome: Outcome,
): Outcome =>
  outcome.kind === 'DeleteSuccess' && 'id' in outcome && typeof outcome.id === 'string'
    ? { ...outcome, id: toPublicId(prefix, outcome.id) }
    : outcome;
