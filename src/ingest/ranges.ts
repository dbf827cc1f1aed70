/** Sequence numbers from..to, both included. Lists of them are in order and do not touch. */
export interface Range {
  from: number;
  to: number;
}

/** As Postgres writes an int8multirange: {[1,5),[7,8)}. */
export function parseRanges(text: string): Range[] {
  return [...text.matchAll(/\[(\d+),(\d+)\)/g)].map(([, from, end]) => ({
    from: Number(from),
    to: Number(end) - 1,
  }));
}

export const formatRanges = (ranges: readonly Range[]): string =>
  `{${ranges.map(({ from, to }) => `[${from},${to}]`).join(',')}}`;

export const everythingBefore = (sequence: number): Range[] =>
  sequence > 1 ? [{ from: 1, to: sequence - 1 }] : [];

/** Single numbers as ranges. */
export function rangesOf(sequences: Iterable<number>): Range[] {
  const ranges: Range[] = [];
  for (const sequence of [...sequences].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last && sequence <= last.to + 1) last.to = Math.max(last.to, sequence);
    else ranges.push({ from: sequence, to: sequence });
  }
  return ranges;
}

/** What is missing from 1 through a number. */
export function holesOf(ranges: readonly Range[], through: number): Range[] {
  const holes: Range[] = [];
  let next = 1;
  for (const { from, to } of ranges) {
    if (from > through) break;
    if (from > next) holes.push({ from: next, to: from - 1 });
    next = to + 1;
  }
  if (next <= through) holes.push({ from: next, to: through });
  return holes;
}

/** The parts of ranges that lie within from..to. */
export const within = (ranges: readonly Range[], from: number, to: number): Range[] =>
  ranges.flatMap((range) => {
    const part = { from: Math.max(range.from, from), to: Math.min(range.to, to) };
    return part.from <= part.to ? [part] : [];
  });

/** The first number from 1 on that is missing. */
export const firstHole = ([first]: readonly Range[]): number => (first?.from === 1 ? first.to + 1 : 1);
