import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { CredentialStore } from '../../src/credentials/credentials.ts';
import { fromPublicId } from '../../src/domain/ids.ts';
import { setClockAhead } from '../support/clock.ts';
import { adminToken, bearer, type GuardedServer, startGuardedServer } from '../support/guarded-server.ts';

let server: GuardedServer;
beforeAll(async () => {
  server = await startGuardedServer();
  for (const name of ['a', 'b']) {
    await server.plane.agent(name);
    await server.plane.job(name, [name]);
  }
});
afterAll(() => server.stop());

const create = `mutation($input: CreateApiTokenInput!) { createApiToken(input: $input) {
  __typename ... on CreateApiTokenSuccess { secret token { id } } ... on Forbidden { scope message } ... on InvalidInput { field message } } }`;

/** What becomes of creating a token as somebody. */
const created = async (token: string, input: object) =>
  (await server.as(token, create, { input: { name: 'new', scopes: ['READ'], ...input } })).createApiToken;

const auditOf = (target: string) =>
  server.plane.rows<{ actor: string; action: string; before: unknown; after: unknown }>(
    'select actor, action, before, after from runplane.audit_entries where target = $1 order by id',
    [target],
  );

describe('an API token', () => {
  test('is made by the admin token, and allows its scopes and nothing else', async () => {
    const { secret } = await server.token({ name: 'launcher', scopes: ['LAUNCH'] });
    expect(secret).toMatch(/^rp_[0-9a-z]{26}_[\w-]{43}$/);
    expect(await server.as(secret, '{ viewer { name scopes } }')).toEqual({
      viewer: { name: 'launcher', scopes: ['LAUNCH'] },
    });
    const launch =
      'mutation { launchRun(input: { job: "a" }) { __typename ... on LaunchRunSuccess { run { id } } } }';
    expect((await server.as(secret, launch)).launchRun).toEqual({
      __typename: 'LaunchRunSuccess',
      run: null,
    });
    const { body } = await server.send('{ runs { nodes { id } } }', bearer(secret));
    expect(body.errors?.[0]?.extensions).toEqual({ code: 'FORBIDDEN', scope: 'READ' });
    expect((await created(secret, {})).scope).toBe('ADMIN');
  });

  test('that ends in the middle of a request does nothing more, whatever was asked for behind it', async () => {
    const { id, secret } = await server.token({ scopes: ['ADMIN', 'LAUNCH'] });
    const { body } = await server.send(
      `mutation($id: ID!) {
         revokeApiToken(id: $id) { __typename }
         createApiToken(input: { name: "afterlife", scopes: [ADMIN] }) { __typename }
         launchRun(input: { job: "a" }) { __typename } }`,
      bearer(secret),
      { id },
    );
    expect(body.data).toEqual({
      revokeApiToken: { __typename: 'DeleteSuccess' },
      createApiToken: null,
      launchRun: null,
    });
    expect(body.errors?.map(({ extensions }) => extensions.code)).toEqual([
      'UNAUTHENTICATED',
      'UNAUTHENTICATED',
    ]);
    expect(await server.plane.rows(`select id from runplane.api_tokens where name = 'afterlife'`)).toEqual(
      [],
    );
  });

  test('is stored without its secret, which is shown once', async () => {
    const { id, secret } = await server.token({ name: 'once', expiresAt: new Date('2100-01-01') });
    const secretPart = secret.split('_').slice(2).join('_');
    const everything = await server.plane.rows<{ text: string }>(
      `select t::text as text from runplane.api_tokens t union all select a::text from runplane.audit_entries a`,
    );
    expect(JSON.stringify(everything)).not.toContain(secretPart);
    const list =
      '{ apiTokens(first: 1) { nodes { id name scopes agents jobs topics expiresAt lastUsedAt revokedAt } } }';
    expect((await server.as(adminToken, list)).apiTokens.nodes).toEqual([
      {
        id,
        name: 'once',
        scopes: ['READ'],
        agents: null,
        jobs: null,
        topics: null,
        expiresAt: '2100-01-01T00:00:00.000Z',
        lastUsedAt: null,
        revokedAt: null,
      },
    ]);
  });

  test('is recorded when it is created and revoked, without its secret; revoking it again changes nothing', async () => {
    const { id } = await server.token({ name: 'recorded', scopes: ['LAUNCH'], jobs: ['a'] });
    await server.revoke(id);
    await server.revoke(id);
    const entries = await auditOf(id);
    expect(entries).toEqual([
      {
        actor: 'admin',
        action: 'api_token.create',
        before: null,
        after: {
          name: 'recorded',
          scopes: ['LAUNCH'],
          agents: null,
          jobs: ['a'],
          topics: null,
          expiresAt: null,
        },
      },
      {
        actor: 'admin',
        action: 'api_token.revoke',
        before: { revokedAt: null },
        after: { revokedAt: expect.any(String) as string },
      },
    ]);
    const unknown = 'mutation { revokeApiToken(id: "tok_01h00000000000000000000000") { __typename } }';
    expect((await server.as(adminToken, unknown)).revokeApiToken.__typename).toBe('NotFound');
  });

  test.each([
    ['scopes', { scopes: [] }],
    ['name', { name: ' ' }],
    ['agents', { scopes: ['WORK'], agents: [] }],
    ['jobs[0]', { scopes: ['LAUNCH'], jobs: ['\u0000'] }],
    ['topics[0]', { scopes: ['PUBLISH'], topics: ['a..b'] }],
    ['agents', { scopes: ['LAUNCH', 'PUBLISH'], agents: ['a'] }, 'agents restricts WORK, which this token'],
    ['jobs', { scopes: ['WORK', 'PUBLISH'], jobs: ['a'] }, 'jobs restricts LAUNCH'],
    ['topics', { scopes: ['WORK', 'LAUNCH', 'READ'], topics: ['a'] }, 'topics restricts PUBLISH'],
    ['expiresAt', { expiresAt: '2020-01-01T00:00:00Z' }],
    ['expiresAt', { expiresAt: '9999-12-31T23:59:59-14:00' }],
    ['agents', { scopes: ['WORK'], agents: Array.from({ length: 201 }, (_, i) => `agent-${i}`) }],
  ])('is refused with a wrong %s, and nothing is written', async (field, input, text = '') => {
    const count = () =>
      server.plane.rows('select id from runplane.api_tokens union all select id from runplane.audit_entries');
    const before = await count();
    expect(await created(adminToken, input)).toMatchObject({
      __typename: 'InvalidInput',
      field,
      message: expect.stringContaining(text) as string,
    });
    expect(await count()).toEqual(before);
  });

  test('grants nothing that its holder lacks', async () => {
    const { secret } = await server.token({ scopes: ['ADMIN', 'READ'] });
    expect(await created(secret, { scopes: ['READ', 'WORK'] })).toMatchObject({
      __typename: 'Forbidden',
      scope: 'WORK',
    });
    expect((await created(secret, {})).__typename).toBe('CreateApiTokenSuccess');
    const restricted = await server.token({
      scopes: ['ADMIN', 'WORK', 'PUBLISH'],
      agents: ['a'],
      topics: ['docs.*'],
    });
    const both = ['WORK', 'PUBLISH'];
    const attempts: [object, string][] = [
      [{ scopes: ['WORK'], agents: ['a'] }, 'CreateApiTokenSuccess'],
      [{ scopes: ['WORK'], topics: ['docs.*'] }, 'Forbidden'],
      [{ scopes: ['ADMIN'] }, 'Forbidden'],
      [{ scopes: ['ADMIN'], agents: ['a'], topics: ['docs.*'] }, 'CreateApiTokenSuccess'],
      [{ agents: ['a'], topics: ['docs.*'] }, 'CreateApiTokenSuccess'],
      [{ agents: ['a'], topics: ['docs.new'] }, 'CreateApiTokenSuccess'],
      [{ agents: ['a'] }, 'Forbidden'],
      [{ agents: ['a', 'b'], topics: ['docs.new'] }, 'Forbidden'],
      [{ agents: ['a'], topics: ['docs.>'] }, 'Forbidden'],
    ];
    for (const [input, becomes] of attempts) {
      expect((await created(restricted.secret, { scopes: both, ...input })).__typename).toBe(becomes);
    }
  });
});

describe('a restricted token', () => {
  test('launches and reruns only its jobs', async () => {
    const { secret } = await server.token({ scopes: ['LAUNCH'], jobs: ['a'] });
    const launch = `mutation { launchRuns(inputs: [{ job: "b" }, { job: "a" }, { job: "none" }]) { __typename ... on Forbidden { scope } } }`;
    expect((await server.as(secret, launch)).launchRuns).toEqual([
      { __typename: 'Forbidden', scope: 'LAUNCH' },
      { __typename: 'LaunchRunSuccess' },
      { __typename: 'Forbidden', scope: 'LAUNCH' },
    ]);
    const one = 'mutation { launchRun(input: { job: "b" }) { __typename } }';
    expect((await server.as(secret, one)).launchRun.__typename).toBe('Forbidden');
    const of = async (job: string) => {
      const find = `{ runs(first: 1, filter: { jobs: ["${job}"] }) { nodes { id } } }`;
      await server.plane.launch(job);
      return (await server.as(adminToken, find)).runs.nodes[0].id as string;
    };
    const rerun = 'mutation($id: ID!) { rerun(input: { runId: $id }) { __typename } }';
    expect((await server.as(secret, rerun, { id: await of('b') })).rerun.__typename).toBe('Forbidden');
    // It gets as far as the run, which is not over.
    expect((await server.as(secret, rerun, { id: await of('a') })).rerun.__typename).toBe('IllegalState');
  });

  test('publishes only to its topics', async () => {
    const { secret } = await server.token({ scopes: ['PUBLISH'], topics: ['docs.>'] });
    const publish = `mutation { publishEvents(inputs: [{ topic: "docs.a.b", payload: 1 }, { topic: "mail", payload: 1 }]) { __typename } 
      publishEvent(input: { topic: "mail", payload: 1 }) { __typename ... on Forbidden { scope } } }`;
    expect(await server.as(secret, publish)).toEqual({
      publishEvents: [{ __typename: 'PublishEventSuccess' }, { __typename: 'Forbidden' }],
      publishEvent: { __typename: 'Forbidden', scope: 'PUBLISH' },
    });
  });

  test('claims only for its agents, also by a pool, and by the key of a claim that reached further', async () => {
    const { secret } = await server.token({ scopes: ['WORK'], agents: ['a'] });
    const unrestricted = await server.token({ scopes: ['WORK'] });
    const claim = `mutation($input: ClaimTasksInput!) { claimTasks(input: $input) {
      __typename ... on ClaimTasksSuccess { assignments { agent } } ... on Forbidden { scope } } }`;
    const claims = async (token: string, input: object) =>
      (await server.as(token, claim, { input: { workerId: 'w', limit: 100, ...input } })).claimTasks;
    await server.plane.launch('a');
    await server.plane.launch('b');
    expect(await claims(secret, { agents: ['a', 'b'] })).toEqual({ __typename: 'Forbidden', scope: 'WORK' });
    const byPool = await claims(secret, { pool: 'core', limit: 1 });
    expect(byPool.assignments).toEqual([{ agent: 'a' }]);
    const key = { agents: ['a', 'b'], idempotencyKey: 'k' };
    const all = await claims(unrestricted.secret, key);
    expect(all.assignments.map(({ agent }: { agent: string }) => agent)).toContain('b');
    const repeated = await claims(secret, { ...key, agents: ['a'] });
    expect(repeated.assignments.map(({ agent }: { agent: string }) => agent)).not.toContain('b');
  });
});

describe('the end of a token', () => {
  /** Another replica on the same database, whose clock the test moves. */
  const stores: CredentialStore[] = [];
  afterEach(() => Promise.all(stores.splice(0).map((store) => store.stop())));
  const replica = () => {
    let now = 0;
    const store = new CredentialStore({
      db: server.plane.services.db,
      adminToken: null,
      external: null,
      onError: (error) => {
        throw error;
      },
      clock: () => now,
    });
    stores.push(store);
    return { store, after: (seconds: number) => (now = seconds * 1000) };
  };

  test('comes at once where it is revoked, and within 30 s elsewhere', async () => {
    const { id, secret } = await server.token({});
    const { store, after } = replica();
    expect(await store.ofToken(secret)).not.toBeNull();
    expect((await server.send('{ viewer { name } }', bearer(secret))).status).toBe(200);
    await server.revoke(id);
    expect((await server.send('{ viewer { name } }', bearer(secret))).status).toBe(401);
    after(24.9);
    expect(await store.ofToken(secret)).not.toBeNull();
    after(25);
    expect(await store.ofToken(secret)).toBeNull();
  });

  test('comes when it expires, also between two looks at the database', async () => {
    const inTen = new Date(Date.now() + 10_000);
    const { secret } = await server.token({ expiresAt: inTen });
    const { store, after } = replica();
    const authority = await store.ofToken(secret);
    expect(await authority?.stands()).toBe(true);
    await setClockAhead(server.plane.database.db, '11 seconds');
    after(10);
    expect(await authority?.stands()).toBe(false);
    expect(await store.ofToken(secret)).toBeNull();
    await setClockAhead(server.plane.database.db, '0 seconds');
  });

  test('is seen with its last use, which is written once a minute', async () => {
    const { id, secret } = await server.token({});
    const uuid = fromPublicId('tok', id);
    const lastUsed = async () =>
      (
        await server.plane.rows<{ at: Date | null }>(
          'select last_used_at as at from runplane.api_tokens where id = $1',
          [uuid],
        )
      )[0]?.at;
    const { store, after } = replica();
    await store.ofToken(secret);
    expect(await lastUsed()).toBeNull();
    await store.stop();
    const first = await lastUsed();
    expect(first).toBeInstanceOf(Date);
    await setClockAhead(server.plane.database.db, '59 seconds');
    after(59);
    await store.ofToken(secret);
    await store.stop();
    // Another replica has not written it, and yet it does not.
    const other = replica();
    await other.store.ofToken(secret);
    await other.store.stop();
    expect(await lastUsed()).toEqual(first);
    await setClockAhead(server.plane.database.db, '61 seconds');
    after(61);
    await store.ofToken(secret);
    await store.stop();
    expect((await lastUsed())?.getTime()).toBeGreaterThan(first?.getTime() ?? Infinity);
    await setClockAhead(server.plane.database.db, '0 seconds');
  });
});
