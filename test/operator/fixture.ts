import { createConfiguration } from '../../src/operator/configuration.ts';
import type {
  Actor,
  Configuration,
  SaveAgentInput,
  SaveJobInput,
  SavePoolInput,
  SaveQueueInput,
  SaveRouteInput,
  SaveThrottleInput,
} from '../../src/operator/types.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { forgetAudit } from '../support/forget-audit.ts';

export const actor: Actor = { name: 'ann', requestId: 'req-1' };

export interface AuditRow {
  actor: string;
  action: string;
  target: string;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
  reason: string | null;
  requestId: string | null;
}

export interface Operator {
  database: TestDatabase;
  configuration: Configuration;
  /** How often a commit was announced. */
  commits(): number;
  audit(): Promise<AuditRow[]>;
  row(table: string, name: string): Promise<Record<string, unknown> | undefined>;
  close(): Promise<void>;
}

/** A database of its own with one of everything that the inputs below refer to. */
export async function startOperator(): Promise<Operator> {
  const database = await createTestDatabase();
  const { db } = database;
  let commits = 0;
  const configuration = createConfiguration({ db, onCommit: () => commits++ });
  await configuration.saveThrottle({ name: 'openai', maxConcurrentTasks: 8 }, actor);
  await configuration.saveThrottle({ name: 'gpu' }, actor);
  await configuration.saveAgent({ name: 'parser', dispatch: { pull: {} } }, actor);
  await configuration.saveAgent({ name: 'embedder', dispatch: { inline: { handler: 'embed' } } }, actor);
  await configuration.saveJob({ name: 'ingest', steps: [{ name: 'parse', agent: 'parser' }] }, actor);
  await forgetAudit(db);
  commits = 0;
  return {
    database,
    configuration,
    commits: () => commits,
    audit: async () => {
      const { rows } = await db.query<AuditRow & Record<string, unknown>>({
        text: `select actor, action, target, before, after, reason, request_id as "requestId"
                 from runplane.audit_entries order by id`,
      });
      return rows;
    },
    row: async (table, name) => {
      const { rows } = await db.query({
        text: `select * from runplane.${table} where name = $1`,
        values: [name],
      });
      return rows[0];
    },
    close: () => database.drop(),
  };
}

type Pair<Input> = readonly [Input, Input];

/** One valid input of each kind, with every field set, and one that differs from it. */
export const inputs: {
  pool: Pair<SavePoolInput>;
  queue: Pair<SaveQueueInput>;
  throttle: Pair<SaveThrottleInput>;
  agent: Pair<SaveAgentInput>;
  job: Pair<SaveJobInput>;
  route: Pair<SaveRouteInput>;
} = {
  pool: [
    { name: 'fast', slotsPerReplica: 4, elastic: true },
    { name: 'fast', slotsPerReplica: 5, elastic: true },
  ],
  queue: [
    { name: 'urgent', pool: 'core', weight: 7, sharedWeight: 2 },
    { name: 'urgent', pool: 'wiki', weight: 7, sharedWeight: 2 },
  ],
  throttle: [
    {
      name: 'anthropic',
      maxConcurrentTasks: 3,
      maxTokensPerMinute: 40_000,
      maxRequestsPerMinute: 50,
      maxRequestsPerSecond: 5,
    },
    { name: 'anthropic', maxConcurrentTasks: 0 },
  ],
  agent: [
    {
      name: 'summariser',
      description: 'Writes\nsummaries',
      dispatch: { pull: { batchBySerialKey: true } },
      queue: 'summary',
      throttles: ['openai', 'gpu'],
      maxConcurrentTasks: 5,
      retryPolicy: {
        maxAttempts: 7,
        backoff: 'LINEAR',
        initialDelaySeconds: 0.5,
        maxDelaySeconds: 60,
        jitter: 0,
        overrides: [{ code: 'TOO_LONG', retry: false }],
      },
      leaseSeconds: 90,
      timeoutSeconds: 3600,
      defaultModel: 'small-1',
      computeCostPerHour: '01.250',
    },
    { name: 'summariser', dispatch: { inline: { handler: 'summarise' } }, throttles: ['gpu'] },
  ],
  job: [
    {
      name: 'digest',
      description: 'Parse and embed',
      configSchema: { type: 'object', required: ['url'], properties: { url: { type: 'string' } } },
      steps: [
        {
          name: 'parse',
          agent: 'parser',
          input: { url: { $eval: 'config.url' } },
          assetKey: 'text',
          maxAttempts: 2,
        },
        {
          name: 'embed',
          agent: 'embedder',
          dependsOn: ['parse'],
          when: 'DEPENDENCIES_FINISHED',
          cancellable: false,
          optional: true,
          assetKey: 'vectors',
          readsAssetKeys: ['text'],
        },
      ],
      enabled: false,
    },
    { name: 'digest', steps: [{ name: 'parse', agent: 'parser' }] },
  ],
  route: [
    {
      name: 'uploads',
      topic: 'files.*.>',
      job: 'ingest',
      config: { file: { $eval: 'payload.file' } },
      customer: { $eval: 'payload.customer' },
      labels: { source: 'upload-${event.topic}' },
      serialKey: '${payload.file}',
      estimatedTokens: 1000,
      priority: -5,
      enabled: false,
    },
    { name: 'uploads', topic: 'files.>', job: 'ingest' },
  ],
};

export type Kind = keyof typeof inputs;
export const kinds = Object.keys(inputs) as Kind[];

type Saved = Awaited<ReturnType<Configuration[`save${Capitalize<Kind>}`]>>;

/** Saves an object of any kind; the input is what a client may send, so it need not be right. */
export function saveAny(configuration: Configuration, kind: Kind, input: object): Promise<Saved> {
  const name = `save${kind[0]?.toUpperCase()}${kind.slice(1)}` as `save${Capitalize<Kind>}`;
  const save = configuration[name] as (input: object, actor: Actor) => Promise<Saved>;
  return save(input, actor);
}
