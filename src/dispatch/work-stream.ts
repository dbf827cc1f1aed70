import type { AgentToClaim } from './agents-to-claim.sql.ts';
import type { WorkAvailable } from './types.ts';

export interface WorkStreamOptions {
  /** The agents that the worker asks for, as they are now. */
  findAgents: () => Promise<readonly AgentToClaim[]>;
  /** Names of those that a claim is worth a call for. */
  findClaimable: (agentIds: readonly string[]) => Promise<readonly string[]>;
  onEnd: (stream: WorkStream) => void;
}

const keepAliveMs = 15_000;
/** Hints that come faster are one. */
const minGapMs = 250;

/**
 * Hints to one worker. They need no buffer and no cursor: what counts is that there is work now. Written as an iterator
 * by hand, because an async generator that waits could not be stopped when its client leaves.
 */
export class WorkStream implements AsyncIterableIterator<WorkAvailable> {
  readonly #options: WorkStreamOptions;
  #agents: ReadonlyMap<string, string>;
  #greeted = false;
  #claimable = new Set<string>();
  #lastMessage = performance.now();
  #wake: (() => void) | null = null;
  #closed = false;

  constructor(agents: readonly AgentToClaim[], options: WorkStreamOptions) {
    this.#options = options;
    this.#agents = byName(agents);
  }

  get agentIds(): readonly string[] {
    return [...this.#agents.values()];
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** These have work, whoever asks for them. */
  offer(names: readonly string[]): void {
    for (const name of names) if (this.#agents.has(name)) this.#claimable.add(name);
    if (this.#claimable.size > 0) this.#wake?.();
  }

  async next(): Promise<IteratorResult<WorkAvailable>> {
    if (!this.#greeted && !this.#closed) {
      this.#greeted = true;
      return this.#message(await this.#options.findClaimable(this.agentIds));
    }
    while (!this.#closed) {
      const quiet = performance.now() - this.#lastMessage;
      if (this.#claimable.size > 0 && quiet >= minGapMs)
        return this.#message([...this.#claimable].toSorted());
      if (quiet >= keepAliveMs) {
        // Queues may serve the pool that did not, or no more.
        this.#agents = byName(await this.#options.findAgents());
        return this.#message([]);
      }
      await this.#wait((this.#claimable.size > 0 ? minGapMs : keepAliveMs) - quiet);
    }
    return { done: true, value: undefined };
  }

  return(): Promise<IteratorReturnResult<undefined>> {
    this.#closed = true;
    this.#options.onEnd(this);
    this.#wake?.();
    return Promise.resolve({ done: true, value: undefined });
  }

  #message(agents: readonly string[]): IteratorResult<WorkAvailable> {
    if (this.#closed) return { done: true, value: undefined };
    // What was offered while these were looked for is told next.
    for (const name of agents) this.#claimable.delete(name);
    this.#lastMessage = performance.now();
    return { done: false, value: { agents } };
  }

  async #wait(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.max(1, ms));
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = null;
  }
}

const byName = (agents: readonly AgentToClaim[]): ReadonlyMap<string, string> =>
  new Map(agents.map(({ id, name }) => [name, id]));
