import type { Signal } from '../changelog/signal.ts';
import { Duty } from '../db/duty.ts';
import type { Database } from '../db/pool.ts';
import { newUuid } from '../domain/ids.ts';
import { traceparentOf } from '../domain/trace-context.ts';
import { preciseNow, type WorkObserver } from '../domain/work-observer.ts';
import type { ResultRecorder } from '../result/results.ts';
import type { AttemptEvents } from '../result/types.ts';
import { claimTasks } from '../scheduler/claim-tasks.ts';
import type { ReadyWatch } from '../scheduler/ready-watch.ts';
import type { Execution } from './execution.ts';
import type { InlineHandler } from './handlers.ts';
import type { Heartbeats, HeldLease } from './heartbeats.ts';
import { InlinePool } from './inline-pool.ts';
import { readServedPools, type ServedPool } from './inline-pools.sql.ts';
import type { WorkerRegistry } from './worker-registry.ts';

export interface InlineDispatchOptions {
  db: Database;
  signal: Signal;
  ready: ReadyWatch;
  results: ResultRecorder;
  attemptEvents: AttemptEvents;
  heartbeats: Heartbeats;
  workers: WorkerRegistry;
  handlers: ReadonlyMap<string, InlineHandler>;
  /** Shown as the worker's name. */
  serverName: string;
  onCommit: () => void;
  onError: (error: unknown, duty: string, of?: object) => void;
  observer: WorkObserver | null;
}

/** Which agents and slots there are is read again at a wake-up, but not more often than this. */
const refreshEveryMs = 250;
const checkEveryMs = 10_000;
const beatEveryMs = 500;
const drainMs = 5_000;

/** Dispatch to handlers in this process, each pool with its own slots. */
export class InlineDispatch {
  readonly #options: InlineDispatchOptions;
  readonly #pools = new Map<string, InlinePool>();
  readonly #workerKey = `server-${newUuid()}`;
  readonly #refreshDuty: Duty;
  readonly #beatDuty: Duty;
  #workerId: string | null = null;
  #unsubscribe: (() => void) | null = null;
  readonly #unwatch: (() => void)[] = [];

  constructor(options: InlineDispatchOptions) {
    this.#options = options;
    const { onError } = options;
    this.#refreshDuty = new Duty({
      name: 'inline pools',
      minGapMs: refreshEveryMs,
      onError,
      runOnce: () => this.#refresh(),
    });
    this.#beatDuty = new Duty({ name: 'heartbeats', onError, runOnce: () => this.#beat() });
  }

  start(): void {
    this.#unsubscribe = this.#options.signal.onChange(() => this.#refreshDuty.wake());
    this.#refreshDuty.start();
    this.#beatDuty.start();
  }

  /** Stops claiming and hands back what is not done; handlers that ignore their signal are left after 5 s. */
  async stop(): Promise<void> {
    this.#unsubscribe?.();
    await this.#refreshDuty.stop();
    for (const unwatch of this.#unwatch) unwatch();
    for (const pool of this.#pools.values()) pool.stop();
    const end = performance.now() + drainMs;
    while (performance.now() < end && [...this.#pools.values()].some((pool) => pool.isBusy))
      await new Promise((resolve) => setTimeout(resolve, 10));
    await this.#options.results.drained();
    await this.#beatDuty.stop();
    // Without a database it is soon taken for gone all the same.
    if (this.#workerId !== null) {
      await this.#options.workers
        .gone(this.#workerKey)
        .catch((error: unknown) => this.#options.onError(error, 'leaving'));
    }
  }

  async #refresh(): Promise<number> {
    const { db, handlers, workers, serverName } = this.#options;
    const served = await readServedPools(db, [...handlers.keys()]);
    const slots = served.reduce((sum, pool) => sum + pool.slots, 0);
    this.#workerId = await workers.asksAlone(
      { workerKey: this.#workerKey, name: serverName, client: 'runplane', slots },
      served.map(({ poolId, agentIds }) => ({ poolId, agentIds })),
    );
    for (const pool of served) {
      const known = this.#pools.get(pool.pool);
      if (known) known.served = pool;
      else {
        const created = this.#createPool(pool);
        this.#pools.set(pool.pool, created);
        this.#unwatch.push(this.#options.ready.add(created));
      }
    }
    for (const [name, pool] of this.#pools) {
      if (!served.some((s) => s.pool === name)) pool.served = { ...pool.served, agentIds: [] };
      pool.wake();
    }
    await this.#hearCancels();
    return checkEveryMs;
  }

  /** Heartbeats tell of cancels too; between them this makes it quick. */
  async #hearCancels(): Promise<void> {
    const executions = this.#executions();
    if (executions.length === 0) return;
    const { rows } = await this.#options.db.query<{ attemptId: string }>({
      name: 'cancel-requests',
      text: 'select attempt_id as "attemptId" from runplane.leases where attempt_id = any($1) and cancel_deadline is not null',
      values: [executions.map(({ execution }) => execution.task.attemptId)],
    });
    const cancelled = new Set(rows.map(({ attemptId }) => attemptId));
    for (const { execution } of executions)
      if (cancelled.has(execution.task.attemptId)) execution.abort('CANCELLED');
  }

  #createPool(served: ServedPool): InlinePool {
    const { db, handlers, results, attemptEvents, onCommit, onError, observer } = this.#options;
    return new InlinePool(served, {
      handlers,
      results,
      attemptEvents,
      onError,
      onDispatch:
        observer &&
        (({ task, claimedAt }) =>
          observer.dispatched({ task, to: 'HANDLER', workerId: this.#workerId ?? '', claimedAt })),
      traceparent: observer ? (work) => observer.traceparent(work) : traceparentOf,
      claim: async ({ poolId, agentIds }, limit) => {
        if (this.#workerId === null || agentIds.length === 0) return [];
        const workerId = this.#workerId;
        const startedAt = observer ? preciseNow() : 0;
        const claimed = await claimTasks(db, {
          agentIds,
          limit,
          workerId,
          claimKey: null,
          poolId,
          leaseSeconds: null,
        });
        if (claimed.length === 0) return claimed;
        onCommit();
        observer?.claimed({ tasks: claimed, workerId, startedAt });
        return claimed;
      },
    });
  }

  /** Extends the leases of which a third is over. */
  async #beat(): Promise<number> {
    const now = performance.now();
    const due = this.#executions().filter(
      ({ execution }) => now - execution.heardAt >= (execution.task.leaseSeconds * 1000) / 3,
    );
    await Promise.all(
      due.map(async ({ pool, execution }) => {
        const held = await this.#options.heartbeats.beat({
          attemptId: execution.task.attemptId,
          progress: null,
          checkpoint: null,
          usage: [],
        });
        execution.heardAt = now;
        this.#heed(pool, execution, held);
      }),
    );
    return beatEveryMs;
  }

  #heed(pool: InlinePool, execution: Execution, held: HeldLease | null): void {
    if (held?.cancelDeadline) execution.abort('CANCELLED');
    // Its own result may just have ended it: then it is not held any more either.
    if (!held && pool.execution(execution.task.attemptId)) pool.drop(execution);
  }

  #executions(): { pool: InlinePool; execution: Execution }[] {
    return [...this.#pools.values()].flatMap((pool) =>
      [...pool.executions].map((execution) => ({ pool, execution })),
    );
  }
}
