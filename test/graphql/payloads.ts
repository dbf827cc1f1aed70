import { toPublicId } from '../../src/domain/ids.ts';
import { actor, type ControlPlane } from '../support/control-plane.ts';
import type { Known } from './walk.ts';

/** Stands in every payload and text of a payload that exists, and nowhere else. */
export const marker = 'the-secret-of-the-customer';

/** Everything that can be asked for, with the marker in what only PAYLOAD_READ may see. */
export async function fillWithPayloads(plane: ControlPlane): Promise<Known> {
  const { configuration, intake, dispatch, attemptEvents, apiTokens } = plane.services;
  await configuration.saveThrottle({ name: 'throttle', maxConcurrentTasks: 100 }, actor);
  // What an entry of the audit log shows of before is no more to be seen at the agent.
  await plane.agent('agent', { throttles: ['throttle'], description: marker });
  await plane.agent('agent', { throttles: ['throttle'], description: 'an agent' });
  await plane.job('job', [
    { name: 'first', agent: 'agent', assetKey: 'asset' },
    { name: 'second', agent: 'agent', dependsOn: ['first'], readsAssetKeys: ['asset'], assetKey: 'more' },
  ]);
  await plane.job('strict', ['agent'], { type: 'object', properties: { text: { enum: [1] } } });
  for (const route of [
    { name: 'route', job: 'job' },
    { name: 'refused', job: 'strict' },
    { name: 'broken', job: 'job', config: { $eval: 'payload.text - 1' } },
  ]) {
    await configuration.saveRoute({ topic: 'topic', ...route }, actor);
  }
  await intake.publishEvents([
    { topic: 'topic', payload: { text: marker }, correlationId: 'trace', customer: 'customer' },
  ]);

  const work = async () => {
    const [assignment] = await plane.claim(['agent'], 1);
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
    materializations: [{ assetKey: 'asset', metadata: { text: marker } }],
  });
  await plane.report(await work(), {
    status: 'COMPLETED',
    output: [marker],
    materializations: [{ assetKey: 'more', partition: 'p', metadata: { text: marker } }],
  });
  await plane.launch('job', { config: { text: marker }, correlationId: 'trace' });
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
  const token = await apiTokens.create({ name: 'token', scopes: ['READ'] }, actor);
  if (token.kind !== 'CreateApiTokenSuccess') throw new Error(token.message);

  return { ids: await someIds(plane), texts: ['job', 'agent', 'asset', 'topic', 'trace', 'first'] };
}

/** A few ids of each kind. */
async function someIds(plane: ControlPlane): Promise<string[]> {
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
