import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  everythingBefore,
  firstHole,
  formatRanges,
  holesOf,
  parseRanges,
  type Range,
  rangesOf,
  within,
} from '../../src/ingest/ranges.ts';

const numbersOf = (ranges: readonly Range[]): number[] =>
  ranges.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, i) => from + i));
const numbers = fc.uniqueArray(fc.integer({ min: 1, max: 60 }), { maxLength: 40 });
const isMissing = (some: readonly number[], through: number): number[] =>
  Array.from({ length: through }, (_, i) => i + 1).filter((n) => !some.includes(n));

test('ranges have just the numbers that they were made of, in order and without touching', () => {
  fc.assert(
    fc.property(numbers, (some) => {
      const ranges = rangesOf(some);
      expect(numbersOf(ranges)).toEqual([...some].sort((a, b) => a - b));
      for (const [i, { from }] of ranges.entries())
        expect(from).toBeGreaterThan((ranges[i - 1]?.to ?? -1) + 1);
    }),
  );
});

test('holes are what is missing through a number, and the first hole is where to begin', () => {
  fc.assert(
    fc.property(numbers, fc.integer({ min: 0, max: 70 }), (some, through) => {
      expect(numbersOf(holesOf(rangesOf(some), through))).toEqual(isMissing(some, through));
      expect(firstHole(rangesOf(some))).toBe(isMissing(some, 61)[0]);
    }),
  );
});

test('a part of ranges is what lies within bounds', () => {
  fc.assert(
    fc.property(numbers, fc.nat(60), fc.nat(60), (some, from, to) => {
      const expected = [...some].sort((a, b) => a - b).filter((n) => n >= from && n <= to);
      expect(numbersOf(within(rangesOf(some), from, to))).toEqual(expected);
    }),
  );
});

test('ranges are read as Postgres writes them', () => {
  expect(parseRanges('{[1,5),[7,8)}')).toEqual([
    { from: 1, to: 4 },
    { from: 7, to: 7 },
  ]);
  expect(parseRanges('{}')).toEqual([]);
  expect(formatRanges([{ from: 1, to: 4 }])).toBe('{[1,4]}');
  expect(everythingBefore(1)).toEqual([]);
  expect(everythingBefore(0)).toEqual([]);
  expect(everythingBefore(5)).toEqual([{ from: 1, to: 4 }]);
});
