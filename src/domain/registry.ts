export interface PoolDefinition {
  name: string;
  slotsPerReplica: number;
  elastic: boolean;
  queues: { name: string; weight: number; sharedWeight: number }[];
}

/**
 * Pools and queues that every installation starts with; saved configuration is never overwritten by them.
 * The one source for the database, the API and the docs.
 */
export const shippedPools: readonly PoolDefinition[] = [
  {
    name: 'core',
    slotsPerReplica: 8,
    elastic: false,
    queues: [
      { name: 'default', weight: 1, sharedWeight: 3 },
      { name: 'interactive', weight: 3, sharedWeight: 3 },
    ],
  },
  {
    name: 'postprocess',
    slotsPerReplica: 2,
    elastic: false,
    queues: [{ name: 'postprocess', weight: 1, sharedWeight: 0 }],
  },
  {
    name: 'enrichment',
    slotsPerReplica: 12,
    elastic: false,
    queues: [
      { name: 'summary', weight: 2, sharedWeight: 2 },
      { name: 'multimodal', weight: 1, sharedWeight: 1 },
      { name: 'graph', weight: 1, sharedWeight: 1 },
      { name: 'question', weight: 1, sharedWeight: 1 },
      { name: 'memory', weight: 1, sharedWeight: 1 },
    ],
  },
  {
    name: 'maintenance',
    slotsPerReplica: 4,
    elastic: false,
    queues: [
      { name: 'sync', weight: 2, sharedWeight: 0 },
      { name: 'maintenance', weight: 1, sharedWeight: 0 },
    ],
  },
  { name: 'shared', slotsPerReplica: 6, elastic: true, queues: [] },
  {
    name: 'wiki',
    slotsPerReplica: 8,
    elastic: false,
    queues: [{ name: 'wiki', weight: 1, sharedWeight: 0 }],
  },
];

export const defaultQueue = 'default';
