import fc from 'fast-check';
import { expect, test } from 'vitest';
import { holesOf, type Range, rangesOf } from '../../src/ingest/ranges.ts';
import { readRanges } from '../../src/ingest/stored-messages.ts';
import type { StreamMessage } from '../../src/ingest/types.ts';

const message = (sequence: number): StreamMessage => ({
  subject: 's',
  data: new Uint8Array(),
  header: () => null,
  hasBrokenHeaders: false,
  sequence,
  storedAt: 0n,
});
const numbersOf = (ranges: readonly Range[]): number[] =>
  ranges.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, i) => from + i));
const numbers = fc.uniqueArray(fc.integer({ min: 1, max: 60 }), { maxLength: 60 });
const never = new AbortController().signal;

/** A stream that has these messages, and how often it was asked. */
function streamOf(sequences: readonly number[]) {
  const stored = [...sequences].sort((a, b) => a - b);
  const asked: number[] = [];
  const read = (from: number): Promise<StreamMessage | null> => {
    asked.push(from);
    const found = stored.find((sequence) => sequence >= from);
    return Promise.resolve(found === undefined ? null : message(found));
  };
  return { read, asked };
}

test('of ranges, what the stream has is read, and the rest is gone, as far as requests go', async () => {
  await fc.assert(
    fc.asyncProperty(numbers, numbers, fc.nat(40), async (stored, wanted, max) => {
      const { read, asked } = streamOf(stored);
      const { messages, gone } = await readRanges(read, rangesOf(wanted), max, never);
      expect(asked.length).toBeLessThanOrEqual(max);
      const done = [...messages.map(({ sequence }) => sequence), ...numbersOf(gone)].sort((a, b) => a - b);
      const inOrder = [...wanted].sort((a, b) => a - b);
      expect(done).toEqual(inOrder.slice(0, asked.length < max ? undefined : done.length));
      for (const { sequence } of messages) expect(stored).toContain(sequence);
      for (const sequence of numbersOf(gone)) expect(stored).not.toContain(sequence);
    }),
  );
});

test('many single holes take no more requests than are allowed, and those after the last message one', async () => {
  const odd = Array.from({ length: 10_000 }, (_, i) => 2 * i + 1);
  const holes = holesOf(rangesOf(odd), 20_000);
  const withOdd = streamOf(odd);
  expect((await readRanges(withOdd.read, holes, 200, never)).gone).toHaveLength(200);
  expect(withOdd.asked).toHaveLength(200);
  const empty = streamOf([]);
  expect((await readRanges(empty.read, holes, 200, never)).gone).toHaveLength(10_000);
  expect(empty.asked).toEqual([2]);
});

test('nothing more is read when it has to stop', async () => {
  const stopping = new AbortController();
  const stream = streamOf([1, 2, 3, 4]);
  const read = (from: number) => {
    if (from === 2) stopping.abort();
    return stream.read(from);
  };
  const { messages } = await readRanges(read, [{ from: 1, to: 4 }], 200, stopping.signal);
  expect(messages.map(({ sequence }) => sequence)).toEqual([1, 2]);
});
