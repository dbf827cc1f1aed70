import { transaction } from '../../src/db/transaction.ts';
import { newUuid, toPublicId } from '../../src/domain/ids.ts';
import { insertIncidents } from '../../src/ingest/incidents.sql.ts';
import { insertRejected } from '../../src/intake/insert-rejected.sql.ts';
import { actor, type ControlPlane } from '../support/control-plane.ts';
import { Client } from './client.ts';
import type { Known } from './walk.ts';

/** Stands in every payload and text of a payload that exists, and nowhere else. */
export const marker = 'the-secret-of-the-customer';

/** Everything that can be asked for, with the marker in what only PAYLOAD_READ may see. */
export async function fillWithPayloads(plane: ControlPlane): Promise<Known> {
  const { configuration, intake, dispatch, attemptEvents, apiTokens } = plane.services;
  await configuration.saveThrottle({ name: 'throttle', maxConcurrentTasks: 100 }, actor);
  // What an entry of the audit log shows of before is no more to be seen at the agent.
  await plane.agent('agent', { throttles: ['throttle'], description: marker });
  await plane.agent('agent', { throttles: ['throttle'], description: 'an agent', defaultModel: 'm' });
  await plane.job('job', [
    { name: 'first', agent: 'agent', assetKey: 'asset' },
    { name: 'second', agent: 'agent', dependsOn: ['first'], readsAssetKeys: ['asset'], assetKey: 'more' },
  ]);
  await plane.agent('inline', { dispatch: { inline: { handler: 'handler' } } });
  await plane.job('strict', ['agent'], { type: 'object', properties: { text: { enum: [1] } } });
  for (const route of [
    { name: 'route', job: 'job' },
    { name: 'refused', job: 'strict' },
    { name: 'broken', job: 'job', config: { $eval: 'payload.text - 1' } },
  ]) {
    await configuration.saveRoute({ topic: 'topic', ...route }, actor);
  }
  await intake.publishEvents([
    {
      topic: 'topic',
      payload: { text: marker },
      correlationId: 'trace',
      customer: 'customer',
      idempotencyKey: 'event key',
    },
  ]);

  const work = async () => {
    const [assignment] = await plane.claim(['agent'], 1, { client: 'a client 1.0' });
    if (!assignment) throw new Error('nothing to claim');
    await attemptEvents.append({
      lease: plane.credentials(assignment),
      events: [{ type: 'thought', data: { text: marker } }],
    });
    return assignment;
  };
  await plane.report(await work(), {
    status: 'COMPLETED',
    output: { text: marker },
    usage: [{ model: 'm', inputTokens: 7, cost: '0.03', raw: { text: marker } }],
    externalRunId: 'run of another system',
    materializations: [{ assetKey: 'asset', metadata: { text: marker } }],
  });
  await plane.report(await work(), {
    status: 'COMPLETED',
    output: [marker],
    materializations: [{ assetKey: 'more', partition: 'p', metadata: { text: marker } }],
  });
  await plane.launch('job', {
    config: { text: marker },
    correlationId: 'trace',
    labels: [{ key: 'tenant_id', value: 'one' }],
  });
  const failed = await work();
  await plane.report(failed, {
    status: 'FAILED',
    error: { code: 'BROKEN', message: `cannot do ${marker}`, kind: 'PERMANENT' },
  });
  await plane.launch('job', { config: { text: marker }, serialKey: 'key' });
  const running = await work();
  await dispatch.extendLeases([
    { ...plane.credentials(running), progress: 0.5, checkpoint: { text: marker } },
  ]);
  await plane.launch('job', { config: { text: marker }, serialKey: 'key' });
  await describe(plane);
  const token = await apiTokens.create(
    {
      name: 'token',
      scopes: ['WORK', 'LAUNCH', 'PUBLISH'],
      agents: ['agent'],
      jobs: ['job'],
      topics: ['topic'],
    },
    actor,
  );
  if (token.kind !== 'CreateApiTokenSuccess') throw new Error(token.message);

  await rejectMessage(plane);
  await plane.rows(
    `insert into runplane.knowledge_events (event_id, event_type, correlation_id, pipeline_id, payload_json)
     values ('event', 'embedding', 'trace', 'pipeline', $1)`,
    [{ text: marker }],
  );
  return { ids: await someIds(plane), texts: ['job', 'agent', 'asset', 'topic', 'other', 'trace', 'first'] };
}

/** Texts and templates that all may see who see the object. */
async function describe(plane: ControlPlane): Promise<void> {
  const { configuration } = plane.services;
  await configuration.saveJob(
    {
      name: 'described',
      description: 'a job',
      steps: [{ name: 'only', agent: 'inline', input: { said: 'hello' } }],
    },
    actor,
  );
  await configuration.saveRoute(
    {
      name: 'templates',
      topic: 'other',
      job: 'described',
      config: {},
      customer: 'customer',
      labels: { of: 'all' },
      serialKey: 'key',
      estimatedTokens: 7,
    },
    actor,
  );
  const run = await plane.launch('described', {
    idempotencyKey: 'run key',
    debounce: { key: 'debounced', seconds: 3600 },
  });
  await new Client(plane).query(
    'mutation($id: ID!) { cancelRun(runId: $id, reason: "why") { __typename } }',
    {
      id: toPublicId('run', run),
    },
  );
}

/** A message of a broker that is kept though it is no event, with its incident. */
async function rejectMessage(plane: ControlPlane): Promise<void> {
  const source = { stream: 'STREAM', consumer: 'consumer', ackWaitSeconds: 30, maxDeliver: 10, batch: 1 };
  await plane.rows(
    'insert into runplane.ingest_streams (stream, consumer, ack_wait_seconds, max_deliver) values ($1, $2, 30, 10)',
    [source.stream, source.consumer],
  );
  const raw = Buffer.from(marker);
  const id = newUuid();
  const event = {
    id,
    topic: 'topic',
    idempotencyKey: null,
    correlationId: 'trace',
    traceContext: null,
    code: 'NOT_JSON',
    message: `${marker} is no JSON`,
    raw,
    bytes: raw.length,
  };
  await transaction(plane.services.db, async (tx) => {
    await insertRejected(tx, [event]);
    await insertIncidents(tx, source, [
      { kind: 'POISON', from: 1, to: 1, detail: 'NOT_JSON: it is kept.', eventId: id },
    ]);
  });
}

/** A few ids of each kind. */
export async function someIds(plane: ControlPlane): Promise<string[]> {
  const kinds = {
    run: 'runs',
    task: 'tasks',
    att: 'attempts',
    evt: 'events',
    job: 'jobs',
    agent: 'agents',
    thr: 'throttles',
    queue: 'queues',
    pool: 'pools',
    route: 'routes',
    wrk: 'workers',
    dlq: 'dead_letters',
    asset: 'assets',
    mat: 'materializations',
    audit: 'audit_entries',
    tok: 'api_tokens',
  } as const;
  const ids: string[] = [];
  for (const [prefix, table] of Object.entries(kinds)) {
    const rows = await plane.rows<{ id: string }>(`(select id from runplane.${table} order by id limit 1)
      union (select id from runplane.${table} order by id desc limit 1)`);
    ids.push(...rows.map(({ id }) => toPublicId(prefix as keyof typeof kinds, id)));
  }
  return ids;
}
