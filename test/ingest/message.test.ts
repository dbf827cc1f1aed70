import { expect, test } from 'vitest';
import { fromPublicId, toPublicId } from '../../src/domain/ids.ts';
import { fallbackKey, parseAckSubject, parseNanoseconds, rejectedEvent } from '../../src/ingest/message.ts';
import type { StreamMessage } from '../../src/ingest/types.ts';
import { parseReceivedEvent } from '../../src/intake/parse-event.ts';

const message = (body: string | Uint8Array, more: Partial<StreamMessage> = {}): StreamMessage => ({
  subject: 'pipeline.x',
  data: Buffer.from(body),
  header: () => null,
  hasBrokenHeaders: false,
  sequence: 7,
  storedAt: 1_796_009_595_612_594_341n,
  ...more,
});
const withId = (id: string) => ({ header: (name: string) => (name === 'Nats-Msg-Id' ? id : null) });

test.each([
  ['$JS.ACK.P.runplane.2.7.9.1796009595612594341.4'],
  ['$JS.ACK.hub.Xa7.P.runplane.2.7.9.1796009595612594341.4'],
  ['$JS.ACK._.Xa7.P.runplane.2.7.9.1796009595612594341.4.random'],
])('a delivery is read from %s', (subject) => {
  expect(parseAckSubject(subject)).toEqual({ count: 2, sequence: 7, storedAt: 1_796_009_595_612_594_341n });
});

test.each([['_INBOX.x'], ['$JS.ACK.P'], ['$JS.ACK.P.runplane.a.b.c.d.e']])('%s is no delivery', (subject) => {
  expect(parseAckSubject(subject)).toBeNull();
});

test.each([
  ['2026-11-30T03:33:15.612594341Z', 1_796_009_595_612_594_341n],
  ['2026-11-30T03:33:15.6Z', 1_796_009_595_600_000_000n],
  ['2026-11-30T03:33:15Z', 1_796_009_595_000_000_000n],
])('%s is read to the nanosecond', (time, nanoseconds) => {
  expect(parseNanoseconds(time)).toBe(nanoseconds);
});

/** The key that an event gets. */
const keyOf = (payload: unknown, more: Partial<StreamMessage> = {}) =>
  parseReceivedEvent({
    topic: 'pipeline.x',
    payload,
    fallbackKey: fallbackKey('S', message('', more)),
  }).key?.text;

test("the key is the payload's, else the producer's, else the number with its time", () => {
  expect(keyOf({ idempotency_key: 'own' }, withId('id'))).toBe('own');
  expect(keyOf({ idempotency_key: null }, withId('id'))).toBe('id');
  expect(keyOf('text', withId('id'))).toBe('id');
  expect(keyOf({})).toBe('S:7:1796009595612594341');
  expect(keyOf({}, { storedAt: 5n })).toBe('S:7:5');
  expect(() => keyOf({ idempotency_key: 5 }, withId('id'))).toThrow('payload.idempotency_key');
  expect(() => keyOf({}, withId('x'.repeat(201)))).toThrow('Nats-Msg-Id');
});

const rejected = (body: string | Uint8Array, more: Partial<StreamMessage> = {}) =>
  rejectedEvent('S', message(body, more), { code: 'NOT_JSON', message: 'm' });

test('a rejected event has the same id at each delivery, which begins with the time of the message', () => {
  const { id } = rejected('x');
  expect(rejected('y').id).toBe(id);
  expect(rejected('x', { sequence: 8 }).id).not.toBe(id);
  expect(rejected('x', { storedAt: 5n }).id).not.toBe(id);
  expect(fromPublicId('evt', toPublicId('evt', id))).toBe(id);
  expect(Number.parseInt(id.replace('-', '').slice(0, 12), 16)).toBe(1_796_009_595_612);
});

test('a rejected event keeps the first 64 KiB, and the names that can be read', () => {
  expect(rejected(new Uint8Array(100_000))).toMatchObject({ raw: { length: 65_536 }, bytes: 100_000 });
  expect(rejected('{"correlation_id": "c", "idempotency_key": "k"}')).toMatchObject({
    correlationId: 'c',
    idempotencyKey: 'k',
  });
  const { id, correlationId, idempotencyKey } = rejected('{"correlation_id": 5, "idempotency_key": ""}');
  expect(correlationId).toBe(toPublicId('evt', id));
  expect(idempotencyKey).toBe('S:7:1796009595612594341');
  // It stays wrong.
  expect(rejected('{}', withId('x'.repeat(500))).idempotencyKey).toHaveLength(201);
  expect(rejected('{}', { subject: `p.${'x'.repeat(300)}` }).topic).toHaveLength(201);
});
