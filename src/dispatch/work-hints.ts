import { Duty } from '../db/duty.ts';
import type { Database } from '../db/pool.ts';
import { InvalidInputError, isInvalidInput } from '../domain/problems.ts';
import { parseName, parseOptionalName } from '../domain/text.ts';
import type { ReadyWatch, Watcher } from '../scheduler/ready-watch.ts';
import { type AgentToClaim, findAgents } from './agents-to-claim.sql.ts';
import { findClaimableAgents } from './claimable-agents.sql.ts';
import type { WorkAvailable, WorkHintSource, WorkHintsOf } from './types.ts';
import { WorkStream } from './work-stream.ts';

export interface WorkHintsOptions {
  db: Database;
  ready: ReadyWatch;
  onError: (error: unknown, duty: string) => void;
}

/** Commits that come faster than that are looked at together, for all workers of the process. */
const minGapMs = 50;
/** It is the ready watch that never stops to look by itself, and wakes this. */
const untilWokenMs = 2 ** 31 - 1;

/** Tells pull workers that sleep on a stream when a claim is worth a call. */
export class WorkHints implements Watcher, WorkHintSource {
  readonly #options: WorkHintsOptions;
  readonly #streams = new Set<WorkStream>();
  readonly #duty: Duty;
  #unwatch: (() => void) | null = null;
  #stopped = false;

  constructor(options: WorkHintsOptions) {
    this.#options = options;
    this.#duty = new Duty({
      name: 'work hints',
      minGapMs,
      onError: options.onError,
      runOnce: () => this.#look(),
    });
  }

  get streams(): number {
    return this.#streams.size;
  }

  get agentIds(): readonly string[] {
    return [...new Set([...this.#streams].flatMap(({ agentIds }) => agentIds))];
  }

  start(): void {
    this.#duty.start();
  }

  /** Ends all streams: their workers go on with another server. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.#streams].map((stream) => stream.return()));
    await this.#duty.stop();
  }

  wake(): void {
    this.#duty.wake();
  }

  /** Throws InvalidInputError for agents and pools that a claim would refuse. */
  async open(of: WorkHintsOf): Promise<AsyncIterableIterator<WorkAvailable>> {
    const { db, ready } = this.#options;
    const names = {
      agents: of.agents?.map((name, i) => parseName(name, `agents[${i}]`)) ?? null,
      pool: parseOptionalName(of.pool, 'pool'),
    };
    if (names.agents === null && names.pool === null)
      throw new InvalidInputError('agents', 'Name the agents, the pool, or both.');
    const agents = async (): Promise<readonly AgentToClaim[]> => {
      const found = await findAgents(db, names);
      if (isInvalidInput(found)) throw new InvalidInputError(found.field, found.message);
      return found.agents;
    };
    const stream = new WorkStream(await agents(), {
      findAgents: agents,
      findClaimable: (ids) => findClaimableAgents(db, ids),
      onEnd: (ended) => this.#leave(ended),
    });
    // Before its first look, so that nothing slips between.
    this.#streams.add(stream);
    this.#unwatch ??= ready.add(this);
    if (this.#stopped) await stream.return();
    return stream;
  }

  #leave(stream: WorkStream): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    this.#unwatch?.();
    this.#unwatch = null;
  }

  async #look(): Promise<number> {
    const ids = this.agentIds;
    if (ids.length === 0) return untilWokenMs;
    const claimable = await findClaimableAgents(this.#options.db, ids);
    if (claimable.length > 0) for (const stream of this.#streams) stream.offer(claimable);
    return untilWokenMs;
  }
}
