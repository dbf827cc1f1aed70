import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { LaunchRunOutcome, PublishEventInput } from '../../src/intake/types.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
});
afterEach(() => plane.stop());

const launch = (input: object) =>
  plane.services.intake
    .launchRuns([{ job: 'one', ...input }])
    .then(([outcome]) => outcome as LaunchRunOutcome);
const publish = (input: Partial<PublishEventInput>) =>
  plane.services.intake
    .publishEvents([{ topic: 'docs.new', payload: {}, ...input }])
    .then(([outcome]) => outcome);
const countRuns = async () => (await plane.rows('select id from runplane.runs')).length;

describe('launches', () => {
  test('with one key make one run, however many come at once', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, () => launch({ idempotencyKey: 'k', config: { a: 1 } })),
    );
    const ids = new Set(outcomes.map((o) => (o.kind === 'LaunchRunSuccess' ? o.runId : o.kind)));
    expect(ids.size).toBe(1);
    expect(outcomes.filter((o) => o.kind === 'LaunchRunSuccess' && !o.replayed)).toHaveLength(1);
    expect(await launch({ idempotencyKey: 'k', config: { a: 2 } })).toMatchObject({
      kind: 'IdempotencyConflict',
      existingId: [...ids][0],
    });
    expect(await countRuns()).toBe(1);
  });

  test('with one key at two replicas make one run', async () => {
    const other = await ControlPlane.start({ database: plane.database });
    const launchAt = (p: ControlPlane) =>
      p.services.intake.launchRuns(
        Array.from({ length: 100 }, (_, i) => ({ job: 'one', idempotencyKey: `k${i}` })),
      );
    await Promise.all([launchAt(plane), launchAt(other), launchAt(plane), launchAt(other)]);
    expect(await countRuns()).toBe(100);
    await other.services.stop();
  });

  test('are each on their own: a bad one stops no other', async () => {
    await plane.job('strict', ['a'], {
      type: 'object',
      required: ['path'],
      properties: { path: { type: 'string' }, size: { minimum: 1 } },
      additionalProperties: false,
    });
    const outcomes = await plane.services.intake.launchRuns([
      { job: 'strict', config: { path: 'x' } },
      { job: 'strict', config: { size: 0, more: 1 } },
      { job: 'strict', config: { path: 5 } },
      { job: 'none' },
      { job: 'strict', config: { path: 'y' }, steps: [{ step: 'unknown' }] },
    ]);
    expect(outcomes.map((o) => o.kind)).toEqual([
      'LaunchRunSuccess',
      'RunConfigValidationInvalid',
      'RunConfigValidationInvalid',
      'JobNotFound',
      'InvalidInput',
    ]);
    const errors = outcomes.flatMap((o) =>
      o.kind === 'RunConfigValidationInvalid' ? o.errors.map((e) => [e.reason, e.path.join('.')]) : [],
    );
    expect(errors.sort((a, b) => String(a).localeCompare(String(b)))).toEqual([
      ['CONSTRAINT_VIOLATED', 'size'],
      ['FIELD_NOT_DEFINED', 'more'],
      ['MISSING_REQUIRED_FIELD', 'path'],
      ['TYPE_MISMATCH', 'path'],
    ]);
    expect(await countRuns()).toBe(1);
  });

  test.each([
    [{ job: ' ' }, 'job'],
    [{ config: [] }, 'config'],
    [{ config: { __proto__x: 1, ['constructor']: 1 } }, 'config'],
    [{ config: { n: 2 ** 53 } }, 'config'],
    [{ config: { s: '\u0000' } }, 'config'],
    [{ idempotencyKey: '' }, 'idempotencyKey'],
    [{ idempotencyKey: 'é'.repeat(101) }, 'idempotencyKey'],
    [{ correlationId: 'a\nb' }, 'correlationId'],
    [{ priority: 1001 }, 'priority'],
    [{ priority: 1.5 }, 'priority'],
    [{ customer: '\ud800' }, 'customer'],
    [
      {
        labels: [
          { key: 'a', value: '1' },
          { key: 'a', value: '2' },
        ],
      },
      'labels[1].key',
      'labels[1].key is a, which is given twice.',
    ],
    [
      { labels: [{ key: 'prototype', value: '' }] },
      'labels[0].key',
      'labels[0].key is prototype, which no label can be called.',
    ],
    [{ labels: [{ key: 'a', value: 'v'.repeat(201) }] }, 'labels[0].value'],
    [{ labels: Array.from({ length: 33 }, (_, i) => ({ key: `k${i}`, value: '' })) }, 'labels'],
    [{ estimatedTokens: -1 }, 'estimatedTokens'],
    [{ availableAt: new Date(Number.NaN) }, 'availableAt'],
    [{ availableAt: new Date('+010000-01-01T00:00:00Z') }, 'availableAt'],
    [{ availableAt: new Date('1969-12-31T23:59:59.999Z') }, 'availableAt'],
    [{ steps: [{ step: 'a' }, { step: 'a' }] }, 'steps[1].step'],
    [{ steps: [{ step: 'a', maxAttempts: 0 }] }, 'steps[0].maxAttempts'],
    [{ steps: [{ step: 'a' }, { step: 'none' }] }, 'steps[1].step', 'has no step none'],
  ])('refuse %j, naming %s', async (input, field, text = field.split(/[.[]/)[0] ?? '') => {
    expect(await launch(input)).toMatchObject({
      kind: 'InvalidInput',
      field,
      message: expect.stringContaining(text),
    });
    expect(await countRuns()).toBe(0);
  });

  test('for later wait for their time', async () => {
    await launch({ availableAt: new Date(Date.now() + 3_600_000) });
    expect(await plane.claim(['a'])).toEqual([]);
    expect(await plane.rows('select reason from runplane.delayed_tasks')).toEqual([{ reason: 'NOT_BEFORE' }]);
  });

  test('with higher priority go first, then the older', async () => {
    for (const [n, priority] of [
      [1, 0],
      [2, 5],
      [3, -5],
      [4, 5],
    ] as const)
      await launch({ config: { n }, priority });
    expect((await plane.claim(['a'])).map((task) => task.input)).toEqual([
      { n: 2 },
      { n: 4 },
      { n: 1 },
      { n: 3 },
    ]);
  });

  test('keep the version of the job that they were launched with', async () => {
    const run = await plane.launch('one');
    await plane.agent('b');
    await plane.job('one', ['b']);
    expect(await plane.steps(run)).toEqual({ a: 'ENQUEUED' });
    expect(await plane.steps(await plane.launch('one'))).toEqual({ b: 'ENQUEUED' });
  });
});

describe('events', () => {
  const route = async (name: string, input: object = {}) => {
    const saved = await plane.services.configuration.saveRoute(
      { name, topic: 'docs.>', job: 'one', ...input },
      actor,
    );
    expect(saved).toMatchObject({ kind: 'SaveRouteSuccess' });
  };

  test('launch one run for each matching route, in one transaction, once per key', async () => {
    await route('r1');
    await route('r2', {
      topic: 'docs.*',
      config: { copy: { $eval: 'payload' }, topic: { $eval: 'event.topic' } },
      labels: { kind: 'doc' },
      customer: { $eval: 'payload.who' },
      priority: 7,
    });
    await route('r3', { topic: 'other.>' });
    const input = { payload: { who: 'acme', idempotency_key: 'm1', correlation_id: 'c1' } };
    const first = await publish(input);
    expect(first).toMatchObject({ kind: 'PublishEventSuccess', replayed: false, refusals: [] });
    const again = await Promise.all(Array.from({ length: 10 }, () => publish(input)));
    for (const outcome of again)
      expect(outcome).toMatchObject({ replayed: true, runIds: (first as { runIds: string[] }).runIds });
    expect(
      await plane.rows(
        'select route, config, customer, labels, priority, correlation_id from runplane.runs order by route',
      ),
    ).toEqual([
      { route: 'r1', config: input.payload, customer: null, labels: {}, priority: 0, correlation_id: 'c1' },
      {
        route: 'r2',
        config: { copy: input.payload, topic: 'docs.new' },
        customer: 'acme',
        labels: { kind: 'doc' },
        priority: 7,
        correlation_id: 'c1',
      },
    ]);
    expect(await publish({ payload: { ...input.payload, who: 'other' } })).toMatchObject({
      kind: 'IdempotencyConflict',
    });
    expect(await plane.rows('select id from runplane.events')).toHaveLength(1);
  });

  test('are stored when a route refuses, and the other routes launch', async () => {
    await plane.job('strict', ['a'], { required: ['path'] });
    await route('good');
    await route('strict', { job: 'strict' });
    await route('broken', { config: { $eval: 'payload.no.such' } });
    await route('wrong labels', { labels: { n: { $eval: '1' } } });
    const outcome = await publish({});
    expect(outcome).toMatchObject({ kind: 'PublishEventSuccess', runIds: [expect.any(String)] });
    const { refusals } = outcome as { refusals: { route: string; errors: object[] }[] };
    expect(refusals.map(({ route: name, errors }) => [name, errors.length])).toEqual([
      ['broken', 0],
      ['strict', 1],
      ['wrong labels', 0],
    ]);
    expect(await plane.rows('select jsonb_array_length(refusals) as n from runplane.events')).toEqual([
      { n: 3 },
    ]);
  });

  test('without a route are stored, those with a bad envelope are not', async () => {
    expect(await publish({ topic: 'nobody.cares' })).toMatchObject({ runIds: [], refusals: [] });
    for (const [bad, field] of [
      [{ topic: 'a..b' }, 'topic'],
      [{ topic: 'a.*' }, 'topic'],
      [{ payload: { idempotency_key: 7 } }, 'payload.idempotency_key'],
      [{ payload: { correlation_id: '' } }, 'payload.correlation_id'],
    ] as const) {
      expect(await publish(bad)).toMatchObject({ kind: 'InvalidInput', field });
    }
    expect(await plane.rows('select topic from runplane.events')).toEqual([{ topic: 'nobody.cares' }]);
  });

  test('of one serial key, given by the route, are worked on in order', async () => {
    await route('serial', { serialKey: { $eval: 'payload.doc' } });
    for (const n of [1, 2]) await publish({ payload: { doc: 'd', n } });
    expect((await plane.claim(['a'])).map((task) => task.serialKey)).toEqual(['d']);
  });
});
