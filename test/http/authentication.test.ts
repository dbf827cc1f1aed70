import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newUuid } from '../../src/domain/ids.ts';
import { apiTokenPrefix, newSecretToken } from '../../src/domain/secret-token.ts';
import { schema } from '../graphql/client.ts';
import { adminToken, bearer, type GuardedServer, startGuardedServer } from '../support/guarded-server.ts';

let server: GuardedServer;
const question = '{ viewer { name } }';

beforeAll(async () => {
  server = await startGuardedServer();
  await server.plane.agent('work');
  await server.plane.job('job', ['work']);
});
afterAll(() => server.stop());

describe('whoever has no valid credential', () => {
  test('gets the same 401, whatever is wrong with it', async () => {
    const good = await server.token({});
    const revoked = await server.token({});
    await server.revoke(revoked.id);
    const other = newSecretToken(apiTokenPrefix, newUuid()).text;
    const credentials: Record<string, string>[] = [
      {},
      bearer(''),
      bearer('nonsense'),
      bearer(`${adminToken}x`),
      bearer(revoked.secret),
      bearer(other),
      // The id of a token that exists, the secret of another.
      bearer(good.secret.slice(0, 30) + other.slice(30)),
      bearer('a.b.c'),
      { authorization: `Basic ${Buffer.from(`admin:${adminToken}`).toString('base64')}` },
      { cookie: 'runplane_session=nonsense' },
      { cookie: `runplane_session=${good.secret}` },
      // A credential that is wrong is not made good by another one.
      { ...bearer('nonsense'), cookie: 'runplane_session=nonsense' },
    ];
    const bodies = new Set<string>();
    for (const headers of credentials) {
      const { status, headers: answered, body } = await server.send(question, headers);
      expect(status).toBe(401);
      expect(answered.get('www-authenticate')).toBe('Bearer realm="runplane"');
      expect(body.errors?.[0]?.extensions).toEqual({ code: 'UNAUTHENTICATED' });
      bodies.add(JSON.stringify(body));
    }
    expect(bodies.size).toBe(1);
    expect((await server.send(question, bearer(good.secret))).body.data).toEqual({
      viewer: { name: 'test' },
    });
  });

  test('gets it for questions by GET and for streams too, and no token is read from the URL', async () => {
    const { secret } = await server.token({});
    for (const [method, accept] of [
      ['GET', 'application/json'],
      ['GET', 'text/event-stream'],
      ['POST', 'text/event-stream'],
    ] as const) {
      const url = `${server.url}?query=${encodeURIComponent(question)}&token=${secret}&access_token=${secret}`;
      const response = await fetch(url, {
        method,
        headers: { accept, 'content-type': 'application/json' },
        ...(method === 'POST' && { body: JSON.stringify({ query: question }) }),
      });
      expect(response.status).toBe(401);
    }
  });

  test('is still told how the server is', async () => {
    for (const path of ['/healthz', '/readyz']) {
      expect((await fetch(`${server.http.url}${path}`)).status).toBe(200);
    }
  });
});

describe('a lease token', () => {
  const extend = (lease: object): string =>
    `extendLeases(leases: [${JSON.stringify(lease).replace(/"(\w+)":/g, '$1:')}]) { state }`;

  test('suffices for its attempt, and for nothing else', async () => {
    await server.plane.launch('job');
    const [assignment] = await server.plane.claim(['work'], 1);
    if (!assignment) throw new Error('nothing to claim');
    const lease = server.plane.credentials(assignment);

    const extended = await server.send(`mutation { ${extend(lease)} }`);
    expect(extended.body).toEqual({ data: { extendLeases: [{ state: 'HELD' }] } });
    for (const more of [
      `mutation { ${extend(lease)} cancelTasks(filter: {}) { __typename } }`,
      `mutation { ...More } fragment More on Mutation { ${extend(lease)} }`,
      `mutation { ${extend(lease)} } query More { tasks { nodes { id } } }`,
      '{ __schema { types { name } } }',
    ]) {
      expect((await server.send(more)).status).toBe(401);
    }

    const report = `mutation($input: ReportResultInput!) { reportResult(input: $input) {
      __typename ... on ReportResultSuccess { outcome taskStatus task { input } attempt { id } } } }`;
    const { body } = await server.send(report, {}, { input: { ...lease, status: 'COMPLETED', output: 1 } });
    // What it did is answered; what it may not read is null.
    expect(body).toEqual({
      data: {
        reportResult: {
          __typename: 'ReportResultSuccess',
          outcome: 'APPLIED',
          taskStatus: 'COMPLETED',
          task: null,
          attempt: null,
        },
      },
    });
    const wrong = { ...lease, leaseToken: 'wrong', status: 'COMPLETED' };
    expect((await server.send(report, {}, { input: wrong })).body.data.reportResult.__typename).toBe(
      'LeaseTokenInvalid',
    );
  });

  test('suffices to tell what its attempt does, and to report in a batch', async () => {
    await server.plane.launch('job');
    const [assignment] = await server.plane.claim(['work'], 1);
    if (!assignment) throw new Error('nothing to claim');
    const lease = server.plane.credentials(assignment);
    const append = `mutation($lease: LeaseRef!) { appendAttemptEvents(lease: $lease, events: [{ type: "log" }]) {
      __typename ... on AppendAttemptEventsSuccess { lastSequence } } }`;
    const report = `mutation($inputs: [ReportResultInput!]!) { reportResults(inputs: $inputs) {
      __typename ... on ReportResultSuccess { outcome task { id } } } }`;
    const wrong = { ...lease, leaseToken: 'wrong' };
    expect((await server.send(append, {}, { lease })).body).toEqual({
      data: { appendAttemptEvents: { __typename: 'AppendAttemptEventsSuccess', lastSequence: 1 } },
    });
    expect((await server.send(append, {}, { lease: wrong })).body).toEqual({
      data: { appendAttemptEvents: { __typename: 'LeaseTokenInvalid' } },
    });
    const inputs = [wrong, lease].map((each) => ({ ...each, status: 'COMPLETED' }));
    expect((await server.send(report, {}, { inputs })).body).toEqual({
      data: {
        reportResults: [
          { __typename: 'LeaseTokenInvalid' },
          { __typename: 'ReportResultSuccess', outcome: 'APPLIED', task: null },
        ],
      },
    });
  });

  test('is the credential of what reports about attempts, and of no other command', async () => {
    const commands = Object.keys(schema.getMutationType()?.getFields() ?? {});
    const admitted: string[] = [];
    for (const command of commands) {
      // Who is admitted is told that the arguments are missing.
      const { status } = await server.send(`mutation { ${command} { __typename } }`);
      if (status !== 401) admitted.push(command);
    }
    expect(admitted.sort()).toEqual(['appendAttemptEvents', 'extendLeases', 'reportResult', 'reportResults']);
  });

  test('is not asked for where a wrong API token comes with it', async () => {
    const { status } = await server.send(
      `mutation { ${extend({ attemptId: 'x', leaseToken: 'y' })} }`,
      bearer('wrong'),
    );
    expect(status).toBe(401);
  });
});
