import type { Database } from '../db/pool.ts';
import { isTerminal, type RunStatus } from '../domain/status.ts';
import type { LoggedChange } from './read-changes.sql.ts';

/** When a stream is complete: what it follows is over. Everything that was written before that is sent first. */
export interface StreamEnd<Entry> {
  /** Asks how things are, when the backlog is through. Later is told by entries, or by waking the stream. */
  begin(wake: () => void): Promise<void>;
  follow(entry: Entry): void;
  readonly reached: boolean;
  leave(): void;
}

/** The end of runs, told by the stream's own entries. */
export class RunsEnd implements StreamEnd<LoggedChange> {
  readonly #db: Database;
  readonly #runIds: readonly string[];
  #remaining: Set<string> | null = null;

  constructor(db: Database, runIds: readonly string[]) {
    this.#db = db;
    this.#runIds = runIds;
  }

  get reached(): boolean {
    return this.#remaining?.size === 0;
  }

  async begin(): Promise<void> {
    const remaining = new Set(this.#runIds);
    this.#remaining = remaining;
    const { rows } = await this.#db.query<{ id: string }>({
      name: 'unfinished-runs',
      text: 'select id from runplane.runs where id = any($1) and finished_at is null',
      values: [this.#runIds],
    });
    const unfinished = new Set(rows.map(({ id }) => id));
    for (const id of this.#runIds) if (!unfinished.has(id)) remaining.delete(id);
  }

  follow(change: LoggedChange): void {
    if (change.taskId === null && isTerminal(change.toStatus as RunStatus))
      this.#remaining?.delete(change.runId);
  }

  leave(): void {}
}
