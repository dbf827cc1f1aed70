import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseSteps } from '../../src/operator/parse-job.ts';
import type { JobStepInput } from '../../src/operator/types.ts';
import { inputs, type Kind, type Operator, saveAny, startOperator } from './fixture.ts';

let operator: Operator;
beforeAll(async () => {
  operator = await startOperator();
});
afterAll(() => operator.close());

const deep = (levels: number): unknown => (levels === 0 ? 1 : [deep(levels - 1)]);
const steps = (...given: object[]): { steps: JobStepInput[] } => ({
  steps: given.map((step, i) => ({ name: `s${i}`, agent: 'parser', ...step })),
});

/** Kind, what is wrong, the field that has to be named, what else the message has to say. */
const wrong: [Kind, object, string, string?][] = [
  ['pool', { slotsPerReplica: -1 }, 'slotsPerReplica', '0 to 1000'],
  ['pool', { slotsPerReplica: 1001 }, 'slotsPerReplica'],
  ['pool', { slotsPerReplica: 1.5 }, 'slotsPerReplica'],
  ['queue', { pool: '' }, 'pool'],
  ['queue', { weight: 101 }, 'weight', '0 to 100'],
  ['queue', { sharedWeight: -1 }, 'sharedWeight'],
  ['throttle', { maxConcurrentTasks: -1 }, 'maxConcurrentTasks'],
  ['throttle', { maxConcurrentTasks: 2 ** 31 }, 'maxConcurrentTasks', '2147483647'],

  ['agent', { description: 'a\0' }, 'description'],
  ['agent', { description: 'x'.repeat(8193) }, 'description', '8192'],
  ['agent', { dispatch: {} }, 'dispatch', 'exactly one'],
  ['agent', { dispatch: { pull: {}, inline: { handler: 'h' } } }, 'dispatch'],
  ['agent', { dispatch: { inline: { handler: ' ' } } }, 'dispatch.inline.handler'],
  ['agent', { dispatch: { webhook: { url: 'https://example.com' } } }, 'dispatch.webhook', 'not served yet'],
  ['agent', { queue: '' }, 'queue'],
  ['agent', { throttles: ['a', 'b', 'c', 'd', 'e'] }, 'throttles', 'at most 4'],
  ['agent', { throttles: ['gpu', 'gpu'] }, 'throttles', 'twice'],
  ['agent', { throttles: [''] }, 'throttles[0]'],
  ['agent', { maxConcurrentTasks: -1 }, 'maxConcurrentTasks'],
  ['agent', { leaseSeconds: 4 }, 'leaseSeconds', '5 to 3600'],
  ['agent', { leaseSeconds: 3601 }, 'leaseSeconds'],
  ['agent', { timeoutSeconds: 0 }, 'timeoutSeconds', '1 to 86400'],
  ['agent', { timeoutSeconds: 86_401 }, 'timeoutSeconds'],
  ['agent', { defaultModel: '' }, 'defaultModel'],
  ['agent', { computeCostPerHour: '-1' }, 'computeCostPerHour'],
  ['agent', { computeCostPerHour: '1e3' }, 'computeCostPerHour'],
  ['agent', { computeCostPerHour: 'NaN' }, 'computeCostPerHour'],
  ['agent', { computeCostPerHour: '.5' }, 'computeCostPerHour'],
  ['agent', { computeCostPerHour: '0.1234567890123' }, 'computeCostPerHour', '12 after the point'],
  ['agent', { retryPolicy: { maxAttempts: 0 } }, 'retryPolicy.maxAttempts', '1 to 1000'],
  ['agent', { retryPolicy: { initialDelaySeconds: -0.1 } }, 'retryPolicy.initialDelaySeconds'],
  ['agent', { retryPolicy: { maxDelaySeconds: Number.NaN } }, 'retryPolicy.maxDelaySeconds'],
  ['agent', { retryPolicy: { jitter: 1.1 } }, 'retryPolicy.jitter', '0 to 1'],
  ['agent', { retryPolicy: { overrides: [{ code: '', retry: true }] } }, 'retryPolicy.overrides[0].code'],
  [
    'agent',
    { retryPolicy: { overrides: [{ code: 'A', retry: true, delaySeconds: -1 }] } },
    'retryPolicy.overrides[0].delaySeconds',
  ],
  [
    'agent',
    { retryPolicy: { overrides: ['A', 'A'].map((code) => ({ code, retry: true })) } },
    'retryPolicy.overrides',
    'twice',
  ],

  ['job', { steps: [] }, 'steps', 'at least one'],
  ['job', steps(...Array.from({ length: 101 }, () => ({}))), 'steps', 'at most 100'],
  ['job', steps({ name: 'a' }, { name: 'a' }), 'steps', 'twice'],
  ['job', steps({ name: '' }), 'steps[0].name'],
  ['job', steps({ agent: '' }), 'steps[0].agent'],
  ['job', steps({}, { dependsOn: ['s9'] }), 'steps[1].dependsOn', '"s9"'],
  ['job', steps({}, { dependsOn: ['s0', 's0'] }), 'steps[1].dependsOn', 'twice'],
  ['job', steps({ dependsOn: ['s1'] }, { dependsOn: ['s0'] }), 'steps', 's0 -> s1 -> s0'],
  ['job', steps({ dependsOn: ['s0'] }), 'steps', 's0 -> s0'],
  ['job', steps({ maxAttempts: 0 }), 'steps[0].maxAttempts'],
  ['job', steps({ assetKey: '' }), 'steps[0].assetKey'],
  ['job', steps({ readsAssetKeys: ['a', 'a'] }), 'steps[0].readsAssetKeys'],
  ['job', steps({ input: { text: '${config.url' } }), 'steps[0].input', 'steps[0].input.text'],
  [
    'job',
    steps({ input: { a: ['${confg.url}'] } }),
    'steps[0].input',
    'steps[0].input.a[0] names confg; the template sees config, run, event, steps.',
  ],
  [
    'job',
    steps({}, { dependsOn: ['s0'], input: { a: '${steps.s9.output}' } }),
    'steps[1].input',
    'steps[1].input.a names steps.s9, which is no step of this job.',
  ],
  [
    'job',
    steps({}, {}, { dependsOn: ['s0'], input: { $eval: 'steps.s1' } }),
    'steps[2].input',
    'steps[2].input.$eval names steps.s1, which "s2" does not depend on.',
  ],
  ['job', steps({ input: '${steps.s0}' }), 'steps[0].input', '"s0" does not depend on'],
  ['job', steps({ input: deep(65) }), 'steps[0].input', '64 levels'],
  ['job', steps({ input: { a: 'x\0' } }), 'steps[0].input'],
  ['job', { configSchema: { type: 'objekt' } }, 'configSchema', 'type'],
  ['job', { configSchema: 'string' }, 'configSchema'],
  ['job', { configSchema: { properties: { a: { pattern: '(' } } } }, 'configSchema', 'regular expression'],
  [
    'job',
    { configSchema: { $ref: 'https://example.com/schema' } },
    'configSchema',
    'https://example.com/schema',
  ],
  ['job', { configSchema: { $ref: '#/$defs/none' } }, 'configSchema', '#/$defs/none'],
  ['job', { configSchema: { $ref: '#' } }, 'configSchema', 'circle'],
  ['job', { configSchema: { $async: true } }, 'configSchema', '$async'],
  [
    'job',
    { configSchema: { $schema: 'http://json-schema.org/draft-07/schema#' } },
    'configSchema',
    'draft-07',
  ],

  ['route', { topic: '' }, 'topic'],
  ['route', { topic: 'a..b' }, 'topic', 'empty token'],
  ['route', { topic: 'a.>.b' }, 'topic'],
  ['route', { topic: 'a.b*' }, 'topic'],
  ['route', { job: '' }, 'job'],
  ['route', { config: { $eval: '1 +' } }, 'config'],
  ['route', { customer: '${' }, 'customer'],
  ['route', { labels: { $maap: [] } }, 'labels', '$maap'],
  ['route', { serialKey: { $if: 'x', els: 1 } }, 'serialKey', 'els'],
  ['route', { estimatedTokens: { $eval: 5 } }, 'estimatedTokens'],
  [
    'route',
    { config: { a: '${config.a}' } },
    'config',
    'config.a names config; the template sees event, payload.',
  ],
  ['route', { priority: 1001 }, 'priority', '-1000 to 1000'],
];

describe('a save of wrong input', () => {
  it.each(wrong)('of a %s %j is refused at %s', async (kind, change, field, text = '') => {
    const outcome = await saveAny(operator.configuration, kind, {
      ...inputs[kind][0],
      name: 'refused',
      ...change,
    });
    expect(outcome).toMatchObject({ kind: 'InvalidInput', field, message: expect.stringContaining(text) });
    expect((outcome as { message: string }).message).toContain(field.split('.').at(-1));
    expect(await operator.row(`${kind}s`, 'refused')).toBeUndefined();
    expect(await operator.audit()).toEqual([]);
  });

  it.each([
    ['what it depends on through another step', { $eval: 'steps.s0.output + steps.s1.output' }],
    ['what is computed, or may be missing', '${steps["s9"]} ${steps[config.step]} ${typeof(now)}'],
    [
      'what it asks for before',
      { $map: { $eval: 'config.xs' }, 'each(x)': '${"s9" in steps && steps.s9.output.x}' },
    ],
  ])('of a job is none where a step names %s', (_, input) => {
    const { steps: named } = steps({}, { dependsOn: ['s0'] }, { dependsOn: ['s1'], input });
    expect(parseSteps(named)).toHaveLength(3);
  });

  it.each<[Kind, object, string]>([
    ['queue', { pool: 'nowhere' }, 'There is no pool "nowhere", which pool names.'],
    ['agent', { queue: 'nowhere' }, 'There is no queue "nowhere", which queue names.'],
    ['agent', { throttles: ['gpu', 'nowhere'] }, 'There is no throttle "nowhere", which throttles names.'],
    ['job', steps({}, { agent: 'nobody' }), 'There is no agent "nobody", which steps[1].agent names.'],
    ['route', { job: 'nothing' }, 'There is no job "nothing", which job names.'],
  ])('of a %s %j finds nothing of that name', async (kind, change, message) => {
    const input = { ...inputs[kind][0], name: 'refused', ...change };
    expect(await saveAny(operator.configuration, kind, input)).toEqual({ kind: 'NotFound', message });
    expect(await operator.row(`${kind}s`, 'refused')).toBeUndefined();
    expect(await operator.audit()).toEqual([]);
  });
});
