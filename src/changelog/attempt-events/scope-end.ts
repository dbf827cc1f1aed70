import type { Database } from '../../db/pool.ts';
import { isTerminal, type RunStatus, type TaskStatus } from '../../domain/status.ts';
import { interestInRun } from '../interest.ts';
import type { LiveSubscriber, LogReader } from '../log-reader.ts';
import type { ChangeScope, LoggedChange } from '../read-changes.sql.ts';
import type { StreamEnd } from '../stream-end.ts';
import { isOver } from './event-scope.sql.ts';
import type { EventScope, LoggedEvent } from './read-events.sql.ts';

/** The end of what a stream of events follows: the change log tells it. */
export class ScopeEnd implements StreamEnd<LoggedEvent>, LiveSubscriber<LoggedChange> {
  readonly #db: Database;
  readonly #changes: LogReader<LoggedChange, ChangeScope>;
  readonly #scope: EventScope;
  #reached = false;
  #wake = (): void => {};

  constructor(db: Database, changes: LogReader<LoggedChange, ChangeScope>, scope: EventScope) {
    this.#db = db;
    this.#changes = changes;
    this.#scope = scope;
  }

  get reached(): boolean {
    return this.#reached;
  }

  async begin(wake: () => void): Promise<void> {
    this.#wake = wake;
    // Joined before it is asked, so that no end falls between.
    const { runId, taskId } = this.#scope;
    await this.#changes.join(this, interestInRun(runId, taskId === null ? 'RUNS' : 'TASKS'));
    if (await isOver(this.#db, this.#scope)) this.#reached = true;
  }

  follow(): void {}

  leave(): void {
    this.#changes.leave(this);
  }

  push(changes: readonly LoggedChange[]): void {
    if (this.#reached || !changes.some((change) => this.#ends(change))) return;
    this.#reached = true;
    this.#wake();
  }

  #ends({ runId, taskId, fromStatus, toStatus }: LoggedChange): boolean {
    const { runId: run, taskId: task, attemptId: attempt } = this.#scope;
    if (task === null) return taskId === null && runId === run && isTerminal(toStatus as RunStatus);
    // Of a task at most one attempt runs: this one ended when its task is processed no more.
    return (
      taskId === task && (attempt === null ? isTerminal(toStatus as TaskStatus) : fromStatus === 'PROCESSING')
    );
  }
}
