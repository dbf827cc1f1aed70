import { afterEach, beforeEach, expect, test } from 'vitest';
import { newUuid } from '../../src/domain/ids.ts';
import type { PublishEventInput } from '../../src/intake/types.ts';
import type { SaveRouteInput } from '../../src/operator/types.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { forgetAudit } from '../support/forget-audit.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
  await forgetAudit(plane.database.db);
});
afterEach(() => plane.stop());

async function route(name: string, input: Partial<SaveRouteInput> = {}): Promise<void> {
  const saved = await plane.services.configuration.saveRoute(
    { name, topic: 'docs.*', job: 'one', ...input },
    actor,
  );
  if (saved.kind !== 'SaveRouteSuccess') throw new Error(saved.message);
}

async function publish(input: Partial<PublishEventInput> = {}) {
  const [outcome] = await plane.services.intake.publishEvents([{ topic: 'docs.new', payload: {}, ...input }]);
  if (outcome?.kind !== 'PublishEventSuccess') throw new Error(JSON.stringify(outcome));
  return outcome;
}

const replay = (eventId: string, at = plane) => at.services.actions.replayEvent({ eventId }, actor);

const runs = () =>
  plane.rows<{ route: string; config: object; customer: string | null }>(
    'select route, config, customer from runplane.runs order by route',
  );

const audit = () =>
  plane.rows<{ action: string; before: object; after: object }>(
    `select action, before, after from runplane.audit_entries where action = 'event.replay' order by id`,
  );

test('a route that was added launches, and those that launched do not again', async () => {
  await route('first');
  const { eventId, runIds } = await publish({ payload: { n: 1 }, customer: 'c' });
  await route('second', { config: { again: { $eval: 'payload.n' }, event: { $eval: 'event.id' } } });
  const outcome = await replay(eventId);
  expect(outcome).toMatchObject({
    kind: 'PublishEventSuccess',
    eventId,
    runIds: [runIds[0], expect.any(String)],
    refusals: [],
    replayed: false,
  });
  expect(await runs()).toEqual([
    { route: 'first', config: { n: 1 }, customer: 'c' },
    { route: 'second', config: { again: 1, event: expect.stringMatching(/^evt_/) }, customer: 'c' },
  ]);
  expect(await replay(eventId)).toMatchObject({ runIds: { length: 2 }, replayed: true });
  expect(await audit()).toEqual([
    {
      action: 'event.replay',
      before: { rejected: false, launched: ['first'], refused: [] },
      after: { rejected: false, launched: ['first', 'second'], refused: [] },
    },
  ]);
  expect(await plane.claim(['a'])).toHaveLength(2);
});

test('a route that was repaired launches; one that still refuses says why by now', async () => {
  await route('broken', { config: { $eval: 'payload.missing' } });
  await route('disabled', { job: 'one', config: 'no object' });
  const { eventId, refusals } = await publish();
  expect(refusals.map((refusal) => refusal.route)).toEqual(['broken', 'disabled']);
  expect(await replay(eventId)).toMatchObject({ runIds: [], replayed: true, refusals });
  expect(await audit()).toEqual([]);

  await route('broken', { config: {} });
  await route('disabled', { config: [] });
  await route('elsewhere', { topic: 'other.>' });
  expect(await replay(eventId)).toMatchObject({
    runIds: { length: 1 },
    refusals: [{ route: 'disabled' }],
    replayed: false,
  });
  const [event] = await plane.rows(
    'select refusals, launched_routes as "launchedRoutes" from runplane.events',
  );
  expect(event).toMatchObject({ refusals: [{ route: 'disabled' }], launchedRoutes: ['broken'] });
  await plane.services.configuration.deleteRoute({ name: 'disabled' }, actor);
  expect(await replay(eventId)).toMatchObject({ refusals: [] });
  expect(await audit()).toHaveLength(2);
});

test('many replays at once, at two replicas, launch each route once', async () => {
  const { eventId } = await publish();
  await route('x');
  await route('y');
  const other = await ControlPlane.start({ database: plane.database });
  const outcomes = await Promise.all(
    Array.from({ length: 20 }, (_, i) => replay(eventId, i % 2 === 0 ? plane : other)),
  );
  await other.services.stop();
  expect(
    outcomes.filter((outcome) => outcome.kind === 'PublishEventSuccess' && !outcome.replayed),
  ).toHaveLength(1);
  expect((await runs()).map((run) => run.route)).toEqual(['x', 'y']);
  expect(await audit()).toHaveLength(1);
});

test('a route whose run is deleted by now stays launched', async () => {
  await route('first');
  const { eventId, runIds } = await publish();
  const [task] = await plane.claim(['a']);
  if (task) await plane.report(task, { status: 'COMPLETED' });
  for (const table of ['attempts', 'tasks', 'change_log', 'usage'])
    await plane.rows(`delete from runplane.${table} where run_id = $1`, [runIds[0]]);
  await plane.rows('delete from runplane.runs');
  expect(await replay(eventId)).toMatchObject({ runIds: [], replayed: true });
  expect(await runs()).toEqual([]);
});

test('an event with a serial key waits behind the runs before it', async () => {
  await route('first', { serialKey: 's' });
  await publish();
  const { eventId } = await publish();
  await route('second', { serialKey: 's' });
  await replay(eventId);
  expect(await plane.claim(['a'])).toHaveLength(1);
});

/** As a broker's message is kept that was refused when it came. */
async function reject(payload: string | null, key: string | null = null): Promise<string> {
  const id = newUuid();
  await plane.rows(
    `with i as (insert into runplane.ingest_incidents (id, stream, consumer, kind, detail, event_id) values ($1, 'S', 'c', 'POISON', 'd', $1))
     insert into runplane.events (id, topic, idempotency_key, correlation_id, source, payload, rejection)
     values ($1, 'docs.new', $2, 'c', 'NATS', $3::jsonb, '{"code": "INVALID", "message": "m", "at": "2026-01-01T00:00:00Z"}')`,
    [id, key, payload],
  );
  return id;
}

test('a rejected event is checked again: refused while it is wrong, launched from when it is right', async () => {
  await route('first');
  const wrong = await reject('{ "idempotency_key": 5 }');
  expect(await replay(wrong)).toMatchObject({ kind: 'InvalidInput', field: 'payload.idempotency_key' });
  expect(await replay(await reject(null))).toMatchObject({ kind: 'InvalidInput', field: 'payload' });
  expect(await audit()).toEqual([]);

  const right = await reject('{ "n": 1 }', 'k');
  expect(await replay(right)).toMatchObject({ runIds: { length: 1 }, replayed: false });
  expect(await audit()).toMatchObject([
    { before: { rejected: true, launched: [] }, after: { rejected: false, launched: ['first'] } },
  ]);
  expect(await plane.rows('select rejection from runplane.events where id = $1', [right])).toEqual([
    { rejection: null },
  ]);
  const twin = await reject('{ "n": 2 }', 'k');
  expect(await replay(twin)).toMatchObject({ kind: 'IdempotencyConflict', existingId: right });
  expect(await runs()).toHaveLength(1);
});

test('an event that there is none of is not found', async () => {
  expect(await replay(newUuid())).toMatchObject({ kind: 'NotFound' });
});
