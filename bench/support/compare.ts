import { spawn } from 'node:child_process';
import { dropDatabase, startServer } from './server.ts';

/** One thing that is measured; its options go to the process that measures it. */
export interface Subject {
  label: string;
  options: Readonly<Record<string, unknown>>;
}

/** What a measuring process answers. */
export type Figures = Record<string, number>;

/** One of the figures that each measurement answers. */
export interface Figure {
  name: string;
  unit: string;
  /** It is printed by itself, without ratios. */
  alone?: true;
}

export interface Comparison {
  title: string;
  /** Each is printed in a table of its own. */
  figures: readonly Figure[];
  subjects: readonly Subject[];
  /** Ratios are of the first subject, the product, to each of the others; or of each to the first one, the reference. */
  ratios: 'of the first' | 'to the first';
  rounds: number;
  /** The data of a subject takes long to make: it is made once, and every round measures on it. */
  preparedOnce?: true;
}

const measureWord = 'measure';
/** One after the other all measurements use it; of another run on the same server it is not the one. */
const database = `bench_${process.pid}`;

/** Where a measuring process works, and whether it makes the data, measures, or does one after the other. */
export interface Place {
  server: string;
  database: string;
  does: 'prepare' | 'measure' | 'both';
}

/** In a process that was started to measure: the options it was given. Null in the one that compares. */
export function measureOptions<T>(): T | null {
  const [word, text] = process.argv.slice(2);
  return word === measureWord && text !== undefined ? (JSON.parse(text) as T) : null;
}

export const answer = (figures: Figures): void =>
  console.log(
    JSON.stringify(figures, (_, value: unknown) =>
      typeof value === 'number' ? Number(value.toFixed(4)) : value,
    ),
  );

/** Runs the comparisons of a benchmark on one Postgres and prints them. */
export async function compareAll(program: string, comparisons: readonly Comparison[]): Promise<void> {
  // Ctrl-C ends the measuring process, which ends the comparison; this process lives to clean up.
  process.on('SIGINT', () => {});
  const server = await startServer();
  try {
    for (const comparison of comparisons) await compare(program, server.url, comparison);
  } finally {
    await server.close();
  }
}

/**
 * Measures each subject in a process and a database of its own, and interleaves the rounds: a machine that is slower
 * for a while is so for all subjects, and their ratio stands.
 */
async function compare(program: string, server: string, comparison: Comparison): Promise<void> {
  const { title, subjects, rounds, preparedOnce } = comparison;
  const databases = subjects.map((_, index) => (preparedOnce ? `${database}_${index}` : database));
  const call = (index: number, does: Place['does']): Promise<Figures> =>
    measure(program, { ...subjects[index]?.options, server, database: databases[index], does });
  const measured: Figures[][] = subjects.map(() => []);
  try {
    for (const index of preparedOnce ? subjects.keys() : []) await call(index, 'prepare');
    for (let round = 0; round < rounds; round++) {
      for (const [index, { label }] of subjects.entries()) {
        const figures = await call(index, preparedOnce ? 'measure' : 'both');
        measured[index]?.push(figures);
        process.stderr.write(`  ${title}, round ${round + 1}: ${label} ${JSON.stringify(figures)}\n`);
      }
    }
  } finally {
    for (const name of new Set(databases)) await dropDatabase(server, name);
  }
  for (const figure of comparison.figures) print(comparison, figure, measured);
}

function print(
  { title, subjects, ratios, rounds }: Comparison,
  { name, unit, alone }: Figure,
  measured: readonly Figures[][],
): void {
  const values = measured.map((figures) => figures.map((figure) => figure[name] ?? Number.NaN));
  const [first = []] = values;
  const compared = ratios === 'of the first' ? 'ratio of the first to it' : 'ratio of it to the first';
  const meaning = alone ? '' : `; ${compared}, range of its rounds`;
  console.log(`\n${title} (${unit}: median, range of ${rounds} rounds${meaning})`);
  for (const [index, { label }] of subjects.entries()) {
    const own = values[index] ?? [];
    const ratio = (a: number, b: number): number => (ratios === 'of the first' ? a / b : b / a);
    const byRound = own.map((value, round) => ratio(first[round] ?? Number.NaN, value));
    const shownRatio =
      index === 0 || alone
        ? ''
        : `${ratio(median(first), median(own)).toFixed(2)}x (${rangeOf(byRound, (r) => r.toFixed(2))})`;
    console.log(
      `  ${label.padEnd(46)} ${shown(median(own)).padStart(8)}  ${rangeOf(own, shown).padEnd(16)} ${shownRatio}`,
    );
  }
}

const shown = (value: number): string => (value < 100 ? value.toPrecision(3) : String(Math.round(value)));

const rangeOf = (values: readonly number[], show: (value: number) => string): string =>
  `${show(Math.min(...values))}-${show(Math.max(...values))}`;

function measure(program: string, options: object): Promise<Figures> {
  return new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      [...process.execArgv, program, measureWord, JSON.stringify(options)],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
    child.on('error', reject);
    child.on('close', (code) => {
      const line = output.trim().split('\n').at(-1) ?? '';
      if (code === 0 && line.startsWith('{')) resolve(JSON.parse(line) as Figures);
      else reject(new Error(`a measurement ended with ${code}: ${output}`));
    });
  });
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

/** The value that so many percent of the others do not exceed. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? Number.NaN;
}

/** Rounds of each comparison; BENCH_ROUNDS for a quick look or a long run. */
export const rounds = Number(process.env.BENCH_ROUNDS ?? 3);

/** What a benchmark was asked for by its arguments: the names of some of its comparisons, or --full for its full size. */
export const asked = {
  full: process.argv.includes('--full'),
  wants: (name: string): boolean => {
    const names = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
    return names.length === 0 || names.includes(name);
  },
};
