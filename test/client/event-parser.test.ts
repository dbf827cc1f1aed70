import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EventParser } from '../../src/client/event-parser.ts';

test('events are read as they were sent, however the stream is cut', () => {
  const text = fc.string({ unit: 'binary' });
  fc.assert(
    fc.property(
      fc.array(fc.record({ id: fc.nat(), data: fc.dictionary(text, text) }), { maxLength: 5 }),
      fc.array(fc.nat(), { maxLength: 20 }),
      fc.constantFrom('\n', '\r\n'),
      (messages, cuts, end) => {
        const stream = messages
          .map(({ id, data }) =>
            [`event: next`, `id: ${id}`, `data: ${JSON.stringify(data)}`, '', ''].join(end),
          )
          .join('');
        const parser = new EventParser();
        const places = [
          0,
          ...cuts.map((cut) => cut % (stream.length + 1)).sort((a, b) => a - b),
          stream.length,
        ];
        const events = places.flatMap((place, i) => parser.push(stream.slice(places[i - 1] ?? 0, place)));
        expect(events).toEqual(messages.map(({ data }) => ({ event: 'next', data: JSON.stringify(data) })));
      },
    ),
  );
});

test('comments and the hint for reconnects are no events', () => {
  const parser = new EventParser();
  expect(parser.push(': hello\n\nretry: 1500\n\nretry: soon\n\nevent: complete\ndata:\n\n')).toEqual([
    { event: 'complete', data: '' },
  ]);
  expect(parser.retryMs).toBe(1500);
});

test('data of several lines is one text; what is cut at the end is not told', () => {
  const parser = new EventParser();
  expect(parser.push('data: a\ndata:b\ndata\n\ndata: lost\n')).toEqual([
    { event: 'message', data: 'a\nb\n' },
  ]);
});
