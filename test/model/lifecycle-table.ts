import { readFileSync } from 'node:fs';

/** docs/task-lifecycle.md as data: the test takes its expectations from what people read. */
const markdown = readFileSync(new URL('../../docs/task-lifecycle.md', import.meta.url), 'utf8');

export type TaskState =
  | 'blocked'
  | 'ready'
  | 'delayed'
  | 'behind'
  | 'processing'
  | 'stopping'
  | 'completed'
  | 'failed'
  | 'cancelled';

export interface Cell {
  /** Of the caller; null where nobody asks. */
  answer: string | null;
  /** A lost attempt's result completes the task. */
  late: boolean;
  /** What the attempt ends as; null: it stays as it is. */
  attempt: string | null;
  /** The state that the task goes to, or one of them; none: it stays as it is. */
  to: TaskState[];
  /** The attempt that executes the task meanwhile ends CANCELLED. */
  newerCancelled: boolean;
}

const grammar =
  /^(?:(?<answer>Success|IllegalState|NotFound|HELD|CANCEL_REQUESTED|STALE|APPLIED|SUPERSEDED|ResultConflict|REPLAYED)(?<late>, late)?:?)? ?(?<attempt>[A-Z_]+)? ?(?:→ (?<to>[a-z]+(?:(?:, | or )[a-z]+)*))?(?<newer>; newer CANCELLED)?$/;

function parseCell(text: string): Cell {
  const found = text === 'nothing' ? {} : grammar.exec(text)?.groups;
  if (!found) throw new Error(`docs/task-lifecycle.md: the cell "${text}" is not understood.`);
  return {
    answer: found.answer ?? null,
    late: found.late !== undefined,
    attempt: found.attempt ?? null,
    to: (found.to?.split(/, | or /) ?? []) as TaskState[],
    newerCancelled: found.newer !== undefined,
  };
}

function tableRows(heading: string, firstColumn: string): string[][] {
  const section = markdown.split(/^## /m).find((text) => text.startsWith(`${heading}\n`));
  const rows = (section ?? '').split('\n').filter((line) => line.startsWith('|'));
  const cells = rows.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  const start = cells.findIndex(([first]) => first === firstColumn);
  if (start === -1) throw new Error(`docs/task-lifecycle.md has no table of "${heading}".`);
  return cells.slice(start).filter(([first]) => !/^-+$/.test(first ?? ''));
}

/** A table of events and states. Remembers which of its cells were looked up. */
export class LifecycleTable {
  readonly #name: string;
  readonly #cells = new Map<string, Cell | null>();
  readonly #seen = new Set<string>();

  constructor(heading: string) {
    this.#name = heading;
    const [head = [], ...rows] = tableRows(heading, 'event');
    for (const [event = '', ...cells] of rows) {
      for (const [i, text] of cells.entries())
        this.#cells.set(`${event} | ${head[i + 1]}`, text === 'impossible' ? null : parseCell(text));
    }
  }

  cell(event: string, state: string): Cell {
    const key = `${event} | ${state}`;
    const cell = this.#cells.get(key);
    if (!cell)
      throw new Error(
        `${this.#name}: ${key} is ${cell === null ? 'impossible' : 'missing'}, but it happened.`,
      );
    this.#seen.add(key);
    return cell;
  }

  /** Cells that never came up, though they are not said to be impossible. */
  unseen(): string[] {
    return [...this.#cells].filter(([key, cell]) => cell && !this.#seen.has(key)).map(([key]) => key);
  }
}

export const taskTable = new LifecycleTable('What is done to a task');
export const attemptTable = new LifecycleTable('What is heard of an attempt');
/** By the status that an attempt ends with: yes, no, or unless spared. */
export const counts = new Map(
  tableRows('What counts against `maxAttempts`', 'attempt')
    .slice(1)
    .map(([status = '', words = '']): [string, string] => [status, words]),
);
