import { spawn } from 'node:child_process';
import { dropDatabase, startServer } from './server.ts';

/** One thing that is measured; its options go to the process that measures it. */
export interface Subject {
  label: string;
  options: Readonly<Record<string, unknown>>;
}

/** What a measuring process answers. */
export type Figures = Record<string, number>;

export interface Comparison {
  title: string;
  /** The figure to show and compare; more is better. */
  figure: string;
  unit: string;
  /** The first one is the product, the others are what it is compared with. */
  subjects: readonly Subject[];
  rounds: number;
}

const measureWord = 'measure';
/** One after the other all measurements use it; of another run on the same server it is not the one. */
const database = `bench_${process.pid}`;

/** Where a measuring process works. */
export interface Place {
  server: string;
  database: string;
}

/** In a process that was started to measure: the options it was given. Null in the one that compares. */
export function measureOptions<T>(): T | null {
  const [word, text] = process.argv.slice(2);
  return word === measureWord && text !== undefined ? (JSON.parse(text) as T) : null;
}

export const answer = (figures: Figures): void => console.log(JSON.stringify(figures));

/** Runs the comparisons of a benchmark on one Postgres and prints them. */
export async function compareAll(program: string, comparisons: readonly Comparison[]): Promise<void> {
  // Ctrl-C ends the measuring process, which ends the comparison; this process lives to clean up.
  process.on('SIGINT', () => {});
  const server = await startServer();
  try {
    for (const comparison of comparisons) await compare(program, server.url, comparison);
    await dropDatabase(server.url, database);
  } finally {
    await server.close();
  }
}

/**
 * Measures each subject in a process and a database of its own, and interleaves the rounds: a machine that is slower
 * for a while is so for all subjects, and their ratio stands.
 */
async function compare(program: string, server: string, comparison: Comparison): Promise<void> {
  const { title, figure, unit, subjects, rounds } = comparison;
  const measured = new Map<Subject, number[]>(subjects.map((subject) => [subject, []]));
  for (let round = 0; round < rounds; round++) {
    for (const subject of subjects) {
      const figures = await measure(program, { ...subject.options, server, database });
      const value = figures[figure];
      if (value === undefined) throw new Error(`${subject.label} did not measure ${figure}`);
      measured.get(subject)?.push(value);
      process.stderr.write(`  ${title}, round ${round + 1}: ${subject.label} ${JSON.stringify(figures)}\n`);
    }
  }
  const [product] = subjects;
  const own = product ? median(measured.get(product) ?? []) : 0;
  console.log(`\n${title} (${unit}: median, range of ${rounds} rounds; ratio of ours to it)`);
  for (const subject of subjects) {
    const values = measured.get(subject) ?? [];
    const range = `${Math.round(Math.min(...values))}-${Math.round(Math.max(...values))}`;
    const ratio = subject === product ? '' : `${(own / median(values)).toFixed(2)}x`;
    console.log(
      `  ${subject.label.padEnd(46)} ${String(Math.round(median(values))).padStart(8)}  ${range.padEnd(16)} ${ratio}`,
    );
  }
}

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

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

/** Rounds of each comparison; BENCH_ROUNDS for a quick look or a long run. */
export const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
