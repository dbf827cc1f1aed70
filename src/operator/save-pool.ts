import { limits } from '../domain/limits.ts';
import { parseInteger } from '../domain/scalars.ts';
import { parseEach } from './parse-fields.ts';
import { lockClaims, readRow } from './rows.ts';
import type { ObjectKind } from './save.ts';
import type { SavePoolInput } from './types.ts';

interface PoolSpec {
  slotsPerReplica: number;
  elastic: boolean;
}

export const poolKind: ObjectKind<SavePoolInput, PoolSpec> = {
  noun: 'pool',
  parse: (input) =>
    parseEach<PoolSpec>({
      slotsPerReplica: () => parseInteger(input.slotsPerReplica, 'slotsPerReplica', 0, limits.slots),
      elastic: () => input.elastic ?? false,
    }),
  references: () => [],
  read: (tx, id) =>
    readRow(
      tx,
      'select slots_per_replica as "slotsPerReplica", elastic from runplane.pools where id = $1',
      id,
    ),
  lockFirst: (tx, name) => lockClaims(tx, 'pool', name),
  columns: (spec) => ({ slots_per_replica: spec.slotsPerReplica, elastic: spec.elastic }),
};
