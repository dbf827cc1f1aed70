import type {
  Changes,
  MessageStream,
  RunChange,
  RunChangeFilter,
  TaskChange,
  TaskChangeFilter,
} from '../changelog/types.ts';
import type { RunFilter } from '../read/run-filter.ts';
import type { TaskFilter } from '../read/task-filter.ts';
import { badUserInput, streamError } from './errors.ts';
import { toRunFilter, toTaskFilter } from './filters.ts';

/**
 * A stream of a service whose errors are those of clients. A hand-written iterator: an async generator that waits
 * for the next change could not be stopped before that change, and would hold its place in the log until then.
 */
export class ChangeStream<Message> implements MessageStream<Message> {
  readonly #source: MessageStream<Message>;
  #failed = false;

  constructor(open: () => MessageStream<Message>) {
    try {
      this.#source = open();
    } catch (error) {
      throw streamError(error);
    }
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  offerTo(take: (message: Message) => boolean): void {
    this.#source.offerTo?.(take);
  }

  async next(): Promise<IteratorResult<Message>> {
    if (this.#failed) return { done: true, value: undefined };
    try {
      return await this.#source.next();
    } catch (error) {
      this.#failed = true;
      throw streamError(error);
    }
  }

  async return(): Promise<IteratorResult<Message>> {
    await this.#source.return?.();
    return { done: true, value: undefined };
  }
}

export type TaskChanges = Changes<TaskChange>;
export type RunChanges = Changes<RunChange>;

// A change says what became of a task, not how the task is now: these fields have no meaning for it.
const notOfTaskStreams = ['waitingReasons', 'errorCodes', 'finishedAfter', 'finishedBefore'] as const;
const notOfRunStreams = ['finishedAfter', 'finishedBefore'] as const;

function refuse<Filter extends object>(
  filter: Filter,
  fields: readonly (keyof Filter & string)[],
  path: string,
): void {
  const given = fields.find((field) => filter[field] != null);
  if (given !== undefined)
    throw badUserInput(`${path}.${given}`, `${path}.${given} cannot be used on a stream.`);
}

export function toTaskChangeFilter(filter: TaskFilter | null | undefined): TaskChangeFilter {
  if (!filter) return {};
  refuse(filter, notOfTaskStreams, 'filter');
  if (filter.not) refuse(filter.not, notOfTaskStreams, 'filter.not');
  return toTaskFilter(filter);
}

export function toRunChangeFilter(filter: RunFilter | null | undefined): RunChangeFilter {
  if (!filter) return {};
  refuse(filter, notOfRunStreams, 'filter');
  return toRunFilter(filter);
}
