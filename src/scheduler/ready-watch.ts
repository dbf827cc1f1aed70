import type { Signal } from '../changelog/signal.ts';
import { Duty } from '../db/duty.ts';
import type { Queryable } from '../db/pool.ts';

export interface ReadyWatchOptions {
  db: Queryable;
  signal: Signal;
  onError: (error: unknown, duty: string) => void;
}

/** Somebody who would claim tasks of these agents if there were any. */
export interface Watcher {
  agentIds: readonly string[];
  wake(): void;
}

/** Between two looks; commits that come faster than that are looked at together. */
const minGapMs = 2;
const everyMs = 10_000;
/** Of a limit that opens bit by bit, looks are made for several bits together. */
const openingGapMs = 25;

const readySql = `
with now as materialized (select runplane.clock() as at),
w as materialized (
  select array(select w.id from unnest($1::uuid[]) as w(id) where exists (select from runplane.ready_head(w.id))) as ready)
select w.ready, (extract(epoch from runplane.next_opening(w.ready, n.at) - n.at) * 1000)::float8 as "opensInMs" from w cross join now n`;

/**
 * Looks once for everybody in this process whether there is something to claim. Commits are frequent and claims take
 * locks: without it every commit would make every idle pool and every waiting worker claim in vain.
 */
export class ReadyWatch {
  readonly #watchers = new Set<Watcher>();
  readonly #duty: Duty;
  readonly #signal: Signal;
  #unsubscribe: (() => void) | null = null;

  constructor({ db, signal, onError }: ReadyWatchOptions) {
    this.#signal = signal;
    this.#duty = new Duty({ name: 'ready watch', minGapMs, onError, runOnce: () => this.#look(db) });
  }

  start(): void {
    this.#unsubscribe = this.#signal.onChange(() => {
      if (this.#watchers.size > 0) this.#duty.wake();
    });
    this.#duty.start();
  }

  async stop(): Promise<void> {
    this.#unsubscribe?.();
    await this.#duty.stop();
  }

  get watchers(): number {
    return this.#watchers.size;
  }

  /** From now on the watcher is woken when there may be work. Answers how to leave. */
  add(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  async #look(db: Queryable): Promise<number> {
    const ids = new Set([...this.#watchers].flatMap(({ agentIds }) => agentIds));
    if (ids.size === 0) return everyMs;
    const { rows } = await db.query<{ ready: string[]; opensInMs: number | null }>({
      name: 'ready-agents',
      text: readySql,
      values: [[...ids]],
    });
    const ready = new Set(rows[0]?.ready);
    for (const watcher of this.#watchers) if (watcher.agentIds.some((id) => ready.has(id))) watcher.wake();
    const opensInMs = rows[0]?.opensInMs ?? everyMs;
    return Math.min(everyMs, Math.max(openingGapMs, opensInMs));
  }
}
