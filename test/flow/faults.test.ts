import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Json } from '../../src/domain/json.ts';
import { renderTemplate } from '../../src/domain/template.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
});
afterEach(() => plane.stop());

test('connections that are ended from outside cost an answer at most, never the process, and work goes on', async () => {
  const run = await plane.launch('one');
  for (let round = 0; round < 3; round++) {
    const launches = plane.services.intake.launchRuns(
      Array.from({ length: 20 }, (_, i) => ({ job: 'one', idempotencyKey: `${round}/${i}` })),
    );
    await plane.rows(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name like 'runplane%' and application_name <> 'runplane-test'`,
    );
    for (const outcome of await launches) expect(['LaunchRunSuccess', 'Unavailable']).toContain(outcome.kind);
  }
  const repeated = await plane.services.intake.launchRuns(
    Array.from({ length: 20 }, (_, i) => ({ job: 'one', idempotencyKey: `0/${i}` })),
  );
  expect(repeated.every((outcome) => outcome.kind === 'LaunchRunSuccess')).toBe(true);
  const [task] = await plane.claim(['a'], 1);
  expect(task?.runId).toBe(run);
  expect(await plane.report(task as never, { status: 'COMPLETED' })).toMatchObject({ outcome: 'APPLIED' });
  await expect.poll(() => plane.services.signal.listening, { timeout: 10_000 }).toBe(true);
});

test.each<Json>([
  { $eval: 'range(0, 1000000000)' },
  { $map: { $eval: 'range(0, 90000)' }, 'each(x)': { $map: { $eval: 'range(0, 90000)' }, 'each(y)': 1 } },
  { $eval: 'split("😀", "")' },
  { $eval: '10 ** 1000' },
  { $eval: 'x' },
])('a template that asks for too much, or gives what is no JSON, is refused in time: %j', (template) => {
  expect(renderTemplate(template, {}, 'input')).toMatchObject({ ok: false });
});

test.each<[Json, string]>([
  [{ $eval: 'x.secret' }, 'object has no property "secret"'],
  [{ a: [1, { 'b c': '${x.secret}' }] }, 'object has no property "secret" (at input.a[1]["b c"])'],
  [{ a: { $map: [1], 'each(y)': { b: { $eval: 'y.c' } } } }, 'infix: . expects objects (at input.a.b)'],
  [{ $fromNow: '${x.text}' }, 'what is to be a time from now is no time expression'],
])('where a template fails is told, and no value: %j', (template, message) => {
  expect(renderTemplate(template, { x: { text: 'a value' } }, 'input')).toEqual({ ok: false, message });
});

test('a schema whose pattern backtracks for ever refuses its own launches and nobody else', async () => {
  await plane.job('slow', ['a'], { properties: { s: { type: 'string', pattern: '^(a+)+$' } } });
  const outcomes = await plane.services.intake.launchRuns([
    { job: 'one' },
    { job: 'slow', config: { s: `${'a'.repeat(40)}!` } },
    { job: 'one' },
    { job: 'slow', config: { s: 'aaa' } },
  ]);
  expect(outcomes.map(({ kind }) => kind)).toEqual([
    'LaunchRunSuccess',
    'RunConfigValidationInvalid',
    'LaunchRunSuccess',
    'LaunchRunSuccess',
  ]);
});

test.each([[{}], [{ debounce: { key: 'k', seconds: 60, collect: true } }]])(
  'many slow ones share one time; who comes too late for it is to come again, others are admitted: %j',
  async (more) => {
    await plane.job('slow', ['a'], { properties: { s: { type: 'string', pattern: '^(a+)+$' } } });
    const slow = { job: 'slow', config: { s: `${'a'.repeat(40)}!` }, ...more };
    // A busy machine may be too slow for the others, too: then they come again, and are admitted.
    await expect
      .poll(
        async () => {
          const outcomes = await plane.services.intake.launchRuns([
            ...Array.from({ length: 40 }, () => slow),
            { job: 'slow', config: { s: 'aaa' }, ...more },
            { job: 'one' },
          ]);
          const kinds = outcomes.map(({ kind }) => kind);
          expect(kinds[0]).toBe('RunConfigValidationInvalid');
          expect(new Set(kinds.slice(2, 40))).toEqual(new Set(['Unavailable']));
          expect(outcomes[39]).toMatchObject({ message: expect.stringMatching(/schema.*longer than 10 ms/) });
          return kinds.slice(40);
        },
        { timeout: 20_000 },
      )
      .toEqual(['LaunchRunSuccess', 'LaunchRunSuccess']);
    expect(await plane.services.intake.launchRuns([slow])).toMatchObject([
      { kind: 'RunConfigValidationInvalid' },
    ]);
  },
);

test('events share it too: one whose routes get no time is not stored', async () => {
  await plane.job('slow', ['a'], { properties: { s: { type: 'string', pattern: '^(a+)+$' } } });
  const route = { name: 'slow', topic: 'slow', job: 'slow' };
  expect(await plane.services.configuration.saveRoute(route, actor)).toMatchObject({
    kind: 'SaveRouteSuccess',
  });
  const outcomes = await plane.services.intake.publishEvents(
    Array.from({ length: 10 }, () => ({ topic: 'slow', payload: { s: `${'a'.repeat(40)}!` } })),
  );
  expect(outcomes[0]).toMatchObject({ kind: 'PublishEventSuccess', refusals: [{ route: 'slow' }] });
  expect(outcomes[9]).toMatchObject({ kind: 'Unavailable' });
  const stored = outcomes.filter(({ kind }) => kind === 'PublishEventSuccess');
  expect(await plane.rows('select id from runplane.events')).toHaveLength(stored.length);
});

const squares = { $map: { $eval: 'range(0, 90000)' }, 'each(y)': 1 };
const endless = { $map: { $eval: 'range(0, 90000)' }, 'each(x)': squares };
const failures = (): Promise<{ step: string; message: string }[]> =>
  plane.rows(
    `select step, error_message as message from runplane.tasks where error_code = 'INPUT_TEMPLATE_FAILED' order by step`,
  );

test('results that make slow templates render share it: each is recorded by itself then, and holds up no other', async () => {
  await plane.job('slow', ['a', { name: 'next', agent: 'a', dependsOn: ['a'], input: endless }]);
  await plane.job('quick', ['a', { name: 'next', agent: 'a', dependsOn: ['a'], input: { x: 1 } }]);
  for (const job of ['slow', 'slow', 'slow', 'slow', 'quick']) await plane.launch(job);
  const claimed = await plane.claim(['a']);
  const outcomes = await plane.services.results.reportResults(
    claimed.map((one) => ({ ...plane.credentials(one), status: 'COMPLETED' })),
  );
  expect(outcomes).toMatchObject(claimed.map(() => ({ outcome: 'APPLIED' })));
  const messages = (await failures()).map(({ message }) => message);
  expect(messages).toHaveLength(4);
  expect(messages).toEqual(messages.map(() => expect.stringMatching(/longer than 250 ms/)));
  expect((await plane.claim(['a'])).map(({ input }) => input)).toEqual([{ x: 1 }]);
});

test('one result that makes many slow templates render does so within a time', async () => {
  const next = ['b', 'c', 'd', 'e'].map((name) => ({ name, agent: 'a', dependsOn: ['a'], input: endless }));
  await plane.job('slow', ['a', ...next]);
  await plane.launch('slow');
  const [first] = await plane.claim(['a']);
  expect(await plane.report(first as never, { status: 'COMPLETED' })).toMatchObject({ outcome: 'APPLIED' });
  const messages = (await failures()).map(({ message }) => message);
  expect(messages).toHaveLength(4);
  expect(messages[3]).toMatch(/longer than 10 ms, which were left after other slow ones/);
});

test('a label may be called like a method of objects', async () => {
  await plane.launch('one', { labels: [{ key: 'toString', value: 'x' }] });
  const { matched } = (await plane.services.actions.cancelRuns(
    { filter: { labels: [{ key: 'toString', values: ['x'] }] }, dryRun: true },
    actor,
  )) as { matched: number };
  expect(matched).toBe(1);
});
