import { limits } from '../domain/limits.ts';
import { parseInteger } from '../domain/scalars.ts';
import { parseName } from '../domain/text.ts';
import { parseEach } from './parse-fields.ts';
import { lockClaims, readRow } from './rows.ts';
import type { ObjectKind } from './save.ts';
import type { SaveQueueInput } from './types.ts';

interface QueueSpec {
  pool: string;
  weight: number;
  sharedWeight: number;
}

export const queueKind: ObjectKind<SaveQueueInput, QueueSpec> = {
  noun: 'queue',
  parse: (input) =>
    parseEach<QueueSpec>({
      pool: () => parseName(input.pool, 'pool'),
      weight: () => parseInteger(input.weight ?? 1, 'weight', 0, limits.weight),
      sharedWeight: () => parseInteger(input.sharedWeight ?? 0, 'sharedWeight', 0, limits.weight),
    }),
  references: ({ pool }) => [{ noun: 'pool', name: pool, field: 'pool' }],
  read: (tx, id) =>
    readRow(
      tx,
      `select p.name as pool, q.weight, q.shared_weight as "sharedWeight"
         from runplane.queues q join runplane.pools p on p.id = q.pool_id where q.id = $1`,
      id,
    ),
  lockFirst: (tx, name) => lockClaims(tx, 'queue', name),
  columns: (spec, idOf) => ({
    pool_id: idOf('pool', spec.pool),
    weight: spec.weight,
    shared_weight: spec.sharedWeight,
  }),
};
