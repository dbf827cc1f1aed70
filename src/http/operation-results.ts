import {
  createSourceEventStream,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  type GraphQLError,
  type OperationDefinitionNode,
  OperationTypeNode,
} from 'graphql';
import type { MessageStream } from '../changelog/types.ts';
import { findRefusal } from './find-refusal.ts';
import { cannotExecute, forbiddenOperation } from './http-error.ts';
import { executedOnce, StreamedResult } from './shared-results.ts';
import { findVariableFaults } from './variable-faults.ts';

export interface Execution {
  args: ExecutionArgs;
  /** Equal for operations that get the same from an event. */
  key: string;
  definition: OperationDefinitionNode;
  /** Turns whatever an iterator or resolver threw into what a client may see. */
  maskError: (error: unknown) => GraphQLError;
  hideSuggestions: boolean;
}

/**
 * What an operation answers, one result after the other. It never throws: what an iterator throws is the last result.
 * It ends at once when it is told to, also while its source waits or would wait for ever.
 */
export class OperationResults implements AsyncIterableIterator<StreamedResult, undefined> {
  readonly #execution: Execution;
  #source: Pick<MessageStream<unknown>, 'next' | 'return' | 'offerTo'> | null = null;
  #only: ExecutionResult | null = null;
  #ended = false;
  #stopWaiting: (() => void) | null = null;

  private constructor(execution: Execution) {
    this.#execution = execution;
  }

  /** Refuses an operation whose variables are wrong, and one that its caller gets nothing of. */
  static async start(execution: Execution): Promise<OperationResults> {
    const results = new OperationResults(execution);
    const only = await results.#start();
    if (!only) return results;
    const faults = findVariableFaults(only, execution.args.schema, execution.hideSuggestions);
    if (faults) throw cannotExecute(faults);
    const refusal = findRefusal(execution.definition, only);
    if (refusal) throw forbiddenOperation(refusal);
    results.#only = results.#masked(only);
    return results;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<StreamedResult, undefined>> {
    if (this.#ended) return { done: true, value: undefined };
    if (this.#only) return this.#last(this.#only);
    try {
      const event = await this.#nextEvent();
      if (this.#ended || !event || event.done) return await this.return();
      const value = await this.#resultOf(event.value);
      return this.#ended ? await this.return() : { done: false, value };
    } catch (error) {
      return this.#last({ errors: [this.#execution.maskError(error)] });
    }
  }

  /** Results of events that come while next() waits are offered here first, where nothing has to be waited for. */
  offerTo(take: (result: StreamedResult) => boolean): void {
    this.#source?.offerTo?.((event) => {
      if (this.#ended) return false;
      try {
        const result = this.#resultOf(event);
        return result instanceof StreamedResult && take(result);
      } catch {
        // It fails again where it is waited for, which is of this stream alone.
        return false;
      }
    });
  }

  #resultOf(event: unknown): StreamedResult | Promise<StreamedResult> {
    const { args, key } = this.#execution;
    const streamed = (result: ExecutionResult): StreamedResult =>
      new StreamedResult(this.#masked(result), cursorOf(event));
    return executedOnce(event, key, () => {
      const result = execute({ ...args, rootValue: event });
      return result instanceof Promise ? result.then(streamed) : streamed(result);
    });
  }

  return(): Promise<IteratorReturnResult<undefined>> {
    if (!this.#ended) {
      this.#ended = true;
      this.#stopWaiting?.();
      // A source that is busy answers later, or never: nobody waits for it, but its fault goes to the log.
      Promise.resolve(this.#source?.return?.()).catch(this.#execution.maskError);
    }
    return Promise.resolve({ done: true, value: undefined });
  }

  /** The one result of what is no stream, or did not become one. */
  async #start(): Promise<ExecutionResult | null> {
    const { args, definition } = this.#execution;
    if (definition.operation !== OperationTypeNode.SUBSCRIPTION) return execute(args);
    const source = await createSourceEventStream(args);
    if (!(Symbol.asyncIterator in source)) return source;
    this.#source = source[Symbol.asyncIterator]();
    return null;
  }

  /** Undefined: it was told to end meanwhile. */
  #nextEvent(): Promise<IteratorResult<unknown, unknown> | undefined> {
    return new Promise((resolve, reject) => {
      this.#stopWaiting = () => resolve(undefined);
      this.#source?.next().then(resolve, reject);
    });
  }

  #last(result: ExecutionResult): IteratorYieldResult<StreamedResult> {
    void this.return();
    return { done: false, value: new StreamedResult(result, null) };
  }

  #masked(result: ExecutionResult): ExecutionResult {
    const { maskError } = this.#execution;
    return { ...result, ...(result.errors && { errors: result.errors.map((error) => maskError(error)) }) };
  }
}

const cursorOf = (value: unknown): string | null =>
  typeof value === 'object' && value !== null && 'cursor' in value && typeof value.cursor === 'string'
    ? value.cursor
    : null;
