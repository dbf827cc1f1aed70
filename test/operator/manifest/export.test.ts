import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { manifestText } from '../../../src/cli/export.ts';
import { exportManifest } from '../../../src/operator/manifest/export.ts';
import { ControlPlane } from '../../support/control-plane.ts';
import { apply, configurationOf, told } from './fixture.ts';

let plane: ControlPlane;
const exported = async (from: ControlPlane): Promise<string> =>
  manifestText(await exportManifest(from.services.db));

/** Texts that YAML would read as something else, and such that would change their form. */
const awkward = [
  'yes',
  'no',
  '~',
  'null',
  'true',
  '1e3',
  '0x1F',
  '0o7',
  '012',
  '1_000',
  '.inf',
  '2026-01-31',
  '12:30',
  '- a',
  '# a',
  'a: b',
  'a #b',
  '&a',
  '*a',
  '!a',
  '|',
  '>',
  '%',
  '@',
  '`',
  '"',
  "'",
  '{',
  '[',
  '? a',
  '<<',
  '',
  ' ',
  ' a',
  'a ',
  'a\n',
  '\n\na\n',
  'a\n b\n\tc',
  '\ta',
  'a\r\nb',
  'é',
  '\u0085',
  '\u2028',
  '\ufeff',
  '😀',
  '\\',
  '---',
  '...',
  `${'long '.repeat(60)}`,
  '=',
];
const values: unknown[] = [
  -0,
  0.1,
  1e21,
  1e-7,
  -1,
  2 ** 53 - 1,
  true,
  null,
  [],
  {},
  [[]],
  [{}],
  [null],
  { '': {} },
  { a: null },
];

beforeAll(async () => {
  plane = await ControlPlane.start();
  await apply(
    plane,
    `
throttles: [{ name: every, maxConcurrentTasks: 0, maxTokensPerMinute: 1, maxRequestsPerMinute: 2, maxRequestsPerSecond: 3 }, { name: none }]
pools: [{ name: shared, slotsPerReplica: 0, elastic: false }, { name: lent, slotsPerReplica: 2, elastic: true }]
queues: [{ name: off, pool: lent, weight: 0, sharedWeight: 100, paused: true }]
agents:
  - name: full
    description: "Every field.\\n\\n  indented\\n"
    dispatch: { pull: { batchBySerialKey: true } }
    queue: off
    throttles: [none, every]
    maxConcurrentTasks: 0
    retryPolicy: { maxAttempts: 7, backoff: LINEAR, initialDelaySeconds: 0.5, maxDelaySeconds: 3, jitter: 0.25, overrides: [{ code: A, retry: false }, { code: LOCK_CONFLICT, retry: true, delaySeconds: 1, countsAttempt: false }] }
    leaseSeconds: 5
    timeoutSeconds: 1
    defaultModel: m
    computeCostPerHour: '0.032786'
    paused: true
  - { name: inline, dispatch: { inline: { handler: h } } }
jobs:
  - name: whole
    description: ''
    enabled: false
    configSchema: { type: object, properties: { a: { type: [string, 'null'], pattern: '^\\d+$' } } }
    steps:
      - { name: a, agent: full, cancellable: false, optional: true, assetKey: x, maxAttempts: 2, input: null }
      - { name: b, agent: inline, dependsOn: [a], when: DEPENDENCIES_FINISHED, input: { $if: 'config.a', then: { '$$x': 1 } }, readsAssetKeys: [x, y] }
  - { name: anything, configSchema: true, steps: [{ name: a, agent: inline }] }
routes:
  - { name: r, topic: 'a.*.>', job: whole, config: { $eval: payload }, customer: '\${payload.c}', labels: { k: v }, serialKey: '1', estimatedTokens: 5, priority: -1000, enabled: false }
`,
  );
  const route = (name: string, config: unknown) =>
    plane.services.configuration.saveRoute(
      { name, topic: 'a', job: 'whole', config },
      { name: 'test', requestId: null },
    );
  const sampled = fc.sample(fc.jsonValue({ maxDepth: 4 }), { numRuns: 150, seed: 7 });
  const configs = [...awkward, ...awkward.map((text) => ({ [text]: text })), ...values, ...sampled];
  for (const [i, config] of configs.entries()) await route(`config ${i}`, config);
  for (const name of awkward) await route(name, null);
});
afterAll(() => plane.stop());

test('what was exported changes nothing where it comes from, also with --prune', async () => {
  const text = await exported(plane);
  const before = await configurationOf(plane);
  const outcome = told(await apply(plane, text, { prune: true }));
  expect(outcome.length).toBeGreaterThan(200);
  expect(outcome.filter((line) => !line.startsWith('unchanged'))).toEqual([]);
  expect(await configurationOf(plane)).toEqual(before);
});

test('applied to another database it makes the same configuration', async () => {
  const text = await exported(plane);
  const other = await ControlPlane.start();
  await apply(other, text);
  expect(await exported(other)).toBe(text);
  await other.stop();
});

test('it is short: what is the default anyway is not written', async () => {
  const other = await ControlPlane.start();
  await other.services.configuration.saveAgent(
    { name: 'plain', dispatch: { pull: {} }, retryPolicy: { backoff: 'EXPONENTIAL' } },
    { name: 'test', requestId: null },
  );
  await other.job('one', ['plain']);
  const text = await exported(other);
  expect(text.slice(text.indexOf('agents:'))).toBe(`agents:
  - name: plain
    dispatch:
      pull: {}
jobs:
  - name: one
    steps:
      - name: plain
        agent: plain
`);
  await other.stop();
});
