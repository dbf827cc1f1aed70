import { type GraphQLField, getNamedType, isUnionType } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { schema } from '../graphql/client.ts';
import { adminToken, bearer, type GuardedServer, startGuardedServer } from '../support/guarded-server.ts';

/** What is promised of each limit, in the order of its table. */
const promised: Record<string, number> = {
  resultBodyBytes: 8 * 1024 * 1024,
  bodyBytes: 1024 * 1024,
  batch: 1000,
  appendedEvents: 500,
  eventDataBytes: 64 * 1024,
  stepsOfJob: 100,
  spawnedByResult: 1000,
  tasksOfRun: 100_000,
  labels: 32,
  labelKeyBytes: 63,
  labelValueBytes: 200,
  nameBytes: 200,
  claim: 100,
  waitSeconds: 25,
  'leaseSeconds.min': 5,
  'leaseSeconds.max': 3600,
  timeoutSeconds: 86_400,
  throttlesOfAgent: 4,
  weight: 100,
  slots: 1000,
  'priority.min': -1000,
  'priority.max': 1000,
  page: 200,
  streamBufferEvents: 256,
  streamBufferBytes: 256 * 1024,
  errorMessageBytes: 8192,
  checkpointBytes: 64 * 1024,
  metadataBytes: 16 * 1024,
  jsonDepth: 64,
  jsonNodes: 100_000,
  jsonBytes: 1024 * 1024,
  resultJsonBytes: 8 * 1024 * 1024,
};

let server: GuardedServer;
let told: Map<string, number>;
beforeAll(async () => {
  server = await startGuardedServer();
  await server.plane.agent('a');
  await server.plane.job('one', ['a']);
  for (const name of ['t1', 't2', 't3', 't4', 't5']) await call('saveThrottle', { input: { name } });
  const { server: info } = await server.as(adminToken, '{ server { limits { name value } } }');
  told = new Map(info.limits.map(({ name, value }: { name: string; value: number }) => [name, value]));
});
afterAll(() => server.stop());

const limit = (name: string): number => told.get(name) ?? Number.NaN;
const ofBytes = (bytes: number): string => 'x'.repeat(bytes);
const many = <T>(entries: number, entry: (i: number) => T): T[] =>
  Array.from({ length: entries }, (_, i) => entry(i));
/** JSON of so many bytes. */
const json = (bytes: number): object => ({ text: ofBytes(bytes - '{"text":""}'.length) });
const nested = (levels: number): unknown => {
  let value: unknown = 1;
  for (let level = 1; level < levels; level++) value = [value];
  return value;
};

const mutations = schema.getMutationType()?.getFields() ?? {};

/** Why a command is refused; null: it is done. */
async function call(name: string, args: object): Promise<string | null> {
  const field = mutations[name] as GraphQLField<unknown, unknown>;
  const variables = field.args.map((arg) => `$${arg.name}: ${String(arg.type)}`).join(', ');
  const given = field.args.map((arg) => `${arg.name}: $${arg.name}`).join(', ');
  const problem = isUnionType(getNamedType(field.type)) ? ' ... on Problem { message }' : '';
  const { body } = await server.send(
    `mutation(${variables}) { answer: ${name}(${given}) { __typename${problem} } }`,
    bearer(adminToken),
    args,
  );
  if (body.errors) return body.errors[0]?.message ?? '';
  const answers: { message?: string }[] = [body.data.answer].flat();
  return answers.find(({ message }) => message !== undefined)?.message ?? null;
}

type Try = (n: number) => Promise<string | null>;

const lease = async (): Promise<{ attemptId: string; leaseToken: string }> => {
  await server.plane.launch('one');
  const [task] = await server.plane.claim(['a'], 1);
  if (!task) throw new Error('nothing to claim');
  return server.plane.credentials(task);
};
const report = async (result: object) =>
  call('reportResult', { input: { ...(await lease()), status: 'COMPLETED', ...result } });
const launch = (input: object) => call('launchRun', { input: { job: 'one', ...input } });
const claim = async (input: object) => {
  await server.plane.launch('one');
  return call('claimTasks', { input: { workerId: 'w', agents: ['a'], limit: 1, ...input } });
};
const agent = (input: object) =>
  call('saveAgent', { input: { name: 'b', dispatch: { pull: {} }, ...input } });
const queue = (input: object) => call('saveQueue', { input: { name: 'q', pool: 'core', ...input } });
const reads = (readsAssetKeys: string[]) =>
  call('saveJob', { input: { name: 'reader', steps: [{ name: 's', agent: 'a', readsAssetKeys }] } });
const lineage: Try = async (depth) => {
  await reads(['source']);
  const query =
    'query($depth: Int) { asset(key: "source") { lineage(depth: $depth, direction: BOTH) { depth } } }';
  const { body } = await server.send(query, bearer(adminToken), { depth });
  return body.errors?.[0]?.message ?? null;
};
const append = async (events: object[]) => call('appendAttemptEvents', { lease: await lease(), events });

const refusedAbove: [string, Try][] = [
  ['appendedEvents', (n) => append(many(n, () => ({ type: 'log' })))],
  ['eventDataBytes', (n) => append([{ type: 'log', data: json(n) }])],
  [
    'stepsOfJob',
    (n) =>
      call('saveJob', { input: { name: 'long', steps: many(n, (i) => ({ name: `s${i}`, agent: 'a' })) } }),
  ],
  ['spawnedByResult', (n) => report({ spawn: many(n, () => ({ step: 's', agent: 'a' })) })],
  ['labels', (n) => launch({ labels: many(n, (i) => ({ key: `k${i}`, value: '' })) })],
  ['labelKeyBytes', (n) => launch({ labels: [{ key: ofBytes(n), value: '' }] })],
  ['labelValueBytes', (n) => launch({ labels: [{ key: 'k', value: ofBytes(n) }] })],
  ['nameBytes', (n) => queue({ name: ofBytes(n) })],
  ['nameBytes', (n) => launch({ idempotencyKey: ofBytes(n) })],
  ['nameBytes', (n) => launch({ correlationId: ofBytes(n) })],
  ['claim', (n) => claim({ limit: n })],
  ['slots', (n) => claim({ slots: n })],
  ['slots', (n) => call('savePool', { input: { name: 'p', slotsPerReplica: n } })],
  ['waitSeconds', (n) => claim({ waitSeconds: n })],
  ['leaseSeconds.max', (n) => claim({ leaseSeconds: n })],
  ['leaseSeconds.max', (n) => agent({ leaseSeconds: n })],
  ['timeoutSeconds', (n) => agent({ timeoutSeconds: n })],
  ['throttlesOfAgent', (n) => agent({ throttles: many(n, (i) => `t${i + 1}`) })],
  ['weight', (n) => queue({ weight: n })],
  ['weight', (n) => queue({ sharedWeight: n })],
  ['priority.max', (n) => launch({ priority: n })],
  [
    'checkpointBytes',
    async (n) => call('extendLeases', { leases: [{ ...(await lease()), checkpoint: json(n) }] }),
  ],
  ['checkpointBytes', (n) => report({ usage: [{ raw: json(n) }] })],
  ['metadataBytes', (n) => report({ materializations: [{ assetKey: 'x', metadata: json(n) }] })],
  ['lineageDepth', lineage],
  ['textBytes', (n) => agent({ description: ofBytes(n) })],
  ['textBytes', (n) => call('cancelRuns', { filter: { jobs: ['one'] }, dryRun: true, reason: ofBytes(n) })],
  ['bulk', (n) => call('cancelRuns', { filter: { jobs: ['one'] }, dryRun: true, limit: n })],
  ['assetsOfStep', (n) => reads(many(n, (i) => `asset${i}`))],
  ['retryDelaySeconds', (n) => agent({ retryPolicy: { initialDelaySeconds: n } })],
  ['retryDelaySeconds', (n) => agent({ retryPolicy: { maxDelaySeconds: n } })],
  [
    'retryOverrides',
    (n) => agent({ retryPolicy: { overrides: many(n, (i) => ({ code: `E${i}`, retry: true })) } }),
  ],
  [
    'retryAfterSeconds',
    (n) => report({ status: 'FAILED', error: { code: 'E', message: '', retryAfterSeconds: n } }),
  ],
  ['requestsOfUsage', (n) => report({ usage: [{ requests: n }] })],
  ['jsonDepth', (n) => launch({ config: { deep: nested(n - 1) } })],
  ['jsonDepth', (n) => report({ output: nested(n) })],
  ['jsonNodes', (n) => launch({ config: { all: many(n - 2, () => 1) } })],
  ['jsonNodes', (n) => report({ output: many(n - 1, () => 1) })],
];

describe('each limit that is promised', () => {
  test('is served with its value', () => {
    expect(Object.fromEntries(Object.keys(promised).map((name) => [name, told.get(name)]))).toEqual(promised);
  });

  test.each(refusedAbove)('is what is refused beyond it: %s', async (name, send) => {
    expect(await send(limit(name))).toBeNull();
    expect(await send(limit(name) + 1)).toContain(String(limit(name)));
  });

  test.each<[string, Try]>([
    ['leaseSeconds.min', (n) => claim({ leaseSeconds: n })],
    ['leaseSeconds.min', (n) => agent({ leaseSeconds: n })],
    ['priority.min', (n) => launch({ priority: n })],
  ])('is what is refused below it: %s', async (name, send) => {
    expect(await send(limit(name))).toBeNull();
    expect(await send(limit(name) - 1)).toContain(String(limit(name)));
  });

  test('is that of JSON, by the bytes that it has written out', async () => {
    const send = async (bytes: number): Promise<string> => {
      // As 0.000001 each number has twice the bytes that it is sent with: the body is small enough.
      const numbers = many(90_000, () => '1e-6').join(',');
      const written = JSON.stringify({ numbers: JSON.parse(`[${numbers}]`), text: '' }).length;
      const response = await fetch(server.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...bearer(adminToken) },
        body: `{"query":"mutation($c: JSON) { launchRun(input: { job: \\"one\\", config: $c }) { __typename ... on Problem { message } } }",
                "variables":{"c":{"numbers":[${numbers}],"text":"${ofBytes(bytes - written)}"}}}`,
      });
      return response.text();
    };
    expect(await send(limit('jsonBytes'))).toContain('LaunchRunSuccess');
    expect(await send(limit('jsonBytes') + 1)).toContain(String(limit('jsonBytes')));
  });

  test('is that of bodies, to the byte', async () => {
    const send = async (query: string, bytes: number): Promise<number> => {
      const body = JSON.stringify({ query, more: '' });
      const response = await fetch(server.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...bearer(adminToken) },
        body: `${body.slice(0, -2)}${ofBytes(bytes - body.length)}${body.slice(-2)}`,
      });
      await response.text();
      return response.status;
    };
    const result =
      'mutation { reportResult(input: { attemptId: "x", leaseToken: "x", status: COMPLETED }) { __typename } }';
    expect(await send('{ viewer { name } }', limit('bodyBytes'))).toBe(200);
    expect(await send('{ viewer { name } }', limit('bodyBytes') + 1)).toBe(413);
    expect(await send(result, limit('resultBodyBytes'))).toBe(200);
    expect(await send(result, limit('resultBodyBytes') + 1)).toBe(413);
  });

  test('is where the message of an error is cut, between two characters', async () => {
    for (const [message, kept] of [
      [ofBytes(limit('errorMessageBytes')), ofBytes(limit('errorMessageBytes'))],
      [ofBytes(limit('errorMessageBytes') + 1), ofBytes(limit('errorMessageBytes'))],
      [`${ofBytes(limit('errorMessageBytes') - 1)}é`, ofBytes(limit('errorMessageBytes') - 1)],
      [`${ofBytes(limit('errorMessageBytes') - 3)}👍`, ofBytes(limit('errorMessageBytes') - 3)],
    ] as const) {
      const { attemptId, leaseToken } = await lease();
      const input = { attemptId, leaseToken, status: 'FAILED', error: { code: 'E', message } };
      expect(await call('reportResult', { input })).toBeNull();
      const query = 'query($id: ID!) { attempt(id: $id) { error { message } } }';
      expect((await server.as(adminToken, query, { id: attemptId })).attempt.error.message).toBe(kept);
    }
  });
});
