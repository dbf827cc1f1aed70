import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SaveRouteInput } from '../../src/operator/types.ts';
import { Client } from '../graphql/client.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
let client: Client;
const save = (input: SaveRouteInput) => plane.services.configuration.saveRoute(input, actor);
beforeAll(async () => {
  plane = await ControlPlane.start();
  client = new Client(plane, ['CONFIGURE']);
  await plane.agent('a');
  await plane.job('one', ['a'], { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } });
  await save({ name: 'plain', topic: 'docs.>', job: 'one' });
  await save({
    name: 'full',
    topic: 'docs.*',
    job: 'one',
    config: { n: { $eval: 'payload.n * 2' } },
    customer: 'c-${payload.n}',
    labels: { topic: '${event.topic}' },
    serialKey: 's',
    estimatedTokens: 12,
    priority: 3,
  });
  await save({ name: 'broken', topic: 'docs.new', job: 'one', config: { n: { $eval: 'payload.absent' } } });
  await save({ name: 'off', topic: 'docs.new', job: 'one', enabled: false });
  await save({ name: 'other', topic: 'elsewhere', job: 'one' });
});
afterAll(() => plane.stop());

const query = `query($topic: String!, $payload: JSON!, $draft: SaveRouteInput) {
  previewRoutes(topic: $topic, payload: $payload, draft: $draft) {
    route job config customer labels { key value } serialKey estimatedTokens priority problem } }`;
const preview = async (payload: unknown, draft: object | null = null, topic = 'docs.new') =>
  (await client.query(query, { topic, payload, draft })).previewRoutes;
const nothing = {
  config: null,
  customer: null,
  labels: null,
  serialKey: null,
  estimatedTokens: null,
  priority: null,
};

test('each matching route tells what it would launch, or why not, as publishing then does', async () => {
  const previews = await preview({ n: 1 });
  expect(previews).toEqual([
    {
      route: 'broken',
      job: 'one',
      ...nothing,
      problem: `The route's config template failed: object has no property "absent" (at config.n)`,
    },
    {
      route: 'full',
      job: 'one',
      config: { n: 2 },
      customer: 'c-1',
      labels: [{ key: 'topic', value: 'docs.new' }],
      serialKey: 's',
      estimatedTokens: 12,
      priority: 3,
      problem: null,
    },
    {
      route: 'plain',
      job: 'one',
      ...nothing,
      config: { n: 1 },
      labels: [],
      priority: 0,
      problem: null,
    },
  ]);
  expect(await plane.rows('select from runplane.events')).toEqual([]);
  expect(await plane.rows('select from runplane.runs')).toEqual([]);

  await plane.services.intake.publishEvents([{ topic: 'docs.new', payload: { n: 1 } }]);
  const launched = await plane.rows(
    `select r.route, r.config, r.customer, r.serial_key as "serialKey", r.priority from runplane.runs r order by r.route`,
  );
  const [event] = await plane.rows<{ refusals: { route: string; message: string }[] }>(
    'select refusals from runplane.events',
  );
  type Preview = { route: string; problem: string | null };
  const told = (previews as (Preview & Record<string, unknown>)[]).filter(({ problem }) => problem === null);
  expect(launched).toEqual(
    told.map(({ route, config, customer, serialKey, priority }) => ({
      route,
      config,
      customer,
      serialKey,
      priority,
    })),
  );
  expect(event?.refusals.map(({ route, message }) => [route, message])).toEqual([
    ['broken', previews[0].problem],
  ]);
});

test("a config that the job's schema refuses is shown with its fault", async () => {
  const [, , plain] = await preview({ n: 'x' });
  expect(plain).toMatchObject({ config: { n: 'x' }, problem: expect.stringContaining('config.n') });
});

test('a draft is tried in place of the saved route of its name', async () => {
  const draft = { name: 'broken', topic: 'docs.*', job: 'one', config: { n: 5 }, enabled: false };
  expect(
    (await preview({ n: 1 }, draft)).map((each: { route: string; config: unknown }) => [
      each.route,
      each.config,
    ]),
  ).toEqual([
    ['broken', { n: 5 }],
    ['full', { n: 2 }],
    ['plain', { n: 1 }],
  ]);
  expect(await preview({}, { ...draft, name: 'new' }, 'third.topic')).toEqual([]);
  expect(await plane.rows(`select config from runplane.routes where name = 'broken'`)).toEqual([
    { config: { n: { $eval: 'payload.absent' } } },
  ]);
});

test.each([
  [
    { config: { n: { $eval: '1 +' } } },
    'config.n.$eval is no json-e template: a value is expected at its end',
  ],
  [{ labels: [{ $if: 'true', otherwise: 1 }] }, 'labels[0] is no json-e template'],
  [{ topic: 'docs.>.x' }, 'topic has > before its last token'],
  [{ job: 'none' }, 'There is no job "none".'],
  [{ priority: 1001 }, 'priority'],
])('a draft with the fault %j says where it is', async (fault, problem) => {
  const draft = { name: 'draft', topic: 'docs.new', job: 'one', ...fault };
  const previews = await preview({ n: 1 }, draft);
  expect(previews.find((each: { route: string }) => each.route === 'draft')).toEqual({
    route: 'draft',
    job: draft.job,
    ...nothing,
    problem: expect.stringContaining(problem),
  });
});

test('a route of a disabled job says so', async () => {
  await plane.services.configuration.saveJob(
    { name: 'dark', enabled: false, steps: [{ name: 'a', agent: 'a' }] },
    actor,
  );
  const draft = { name: 'draft', topic: 'night', job: 'dark' };
  const refused = [
    { route: 'draft', job: 'dark', ...nothing, problem: 'The job of this route is disabled.' },
  ];
  expect(await preview({}, draft, 'night')).toEqual(refused);
  await save(draft);
  expect(await preview({}, null, 'night')).toEqual(refused);
});

test('what could not be published cannot be tried, and nobody tries it without the scope', async () => {
  const given = { topic: 'docs.*', payload: {} };
  expect(await client.refusal(query, given)).toMatchObject({ code: 'BAD_USER_INPUT', field: 'topic' });
  expect(await client.refusal(query, { topic: 'docs.new', payload: { idempotency_key: 1 } })).toMatchObject({
    code: 'BAD_USER_INPUT',
    field: 'payload.idempotency_key',
  });
  const other = new Client(plane, ['READ', 'PAYLOAD_READ', 'PUBLISH', 'OPERATE', 'ADMIN']);
  expect(await other.refusal(query, { ...given, topic: 'docs.new' })).toMatchObject({ code: 'FORBIDDEN' });
});
