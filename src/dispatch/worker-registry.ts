import type { Database } from '../db/pool.ts';
import { transactionByKey } from '../db/transaction.ts';
import { askStands } from '../db/worker-asks.ts';
import { digest } from '../domain/digest.ts';
import { newUuid } from '../domain/ids.ts';

export interface WorkerDescription {
  /** Names the process, fresh at each start. */
  workerKey: string;
  name: string;
  client: string | null;
  slots: number | null;
}

/** What a worker asks for: agents, a pool, or agents of a pool. */
export interface WorkerAsk {
  poolId: string | null;
  /** Null: all that the pool serves. */
  agentIds: readonly string[] | null;
}

const saveSql = `
with now as materialized (select runplane.clock() as at),
given as materialized (select * from json_to_recordset($6::json) as g(key bytea, pool_id uuid, agent_ids uuid[])),
saved as (
  insert into runplane.workers (id, worker_key, name, client, slots, started_at, last_seen_at) select $1, $2, $3, $4, $5, n.at, n.at from now n
  on conflict (worker_key) do update set name = excluded.name, client = excluded.client, slots = excluded.slots,
    last_seen_at = excluded.last_seen_at, left_at = null
  returning id),
asked as (
  insert into runplane.worker_asks (worker_id, key, pool_id, agent_ids, asked_at)
  select s.id, g.key, g.pool_id, g.agent_ids, n.at from saved s cross join now n cross join given g order by g.key
  on conflict (worker_id, key) do update set asked_at = excluded.asked_at),
ended as (
  delete from runplane.worker_asks k using saved s, now n
   where k.worker_id = s.id and k.key not in (select g.key from given g) and ($7 or not ${askStands('k', 'n.at')}))
select s.id from saved s`;

/** How often what is heard all the time is written down. */
const everyMs = 10_000;
const remembered = 10_000;
const rememberedAsks = 100;

interface KnownWorker {
  id: string;
  description: string;
  /** When what it asks for was written down. */
  asks: Map<string, number>;
}

/** The workers that this process hears of, in the table that all replicas see. */
export class WorkerRegistry {
  readonly #db: Database;
  readonly #known = new Map<string, KnownWorker>();

  constructor(db: Database) {
    this.#db = db;
  }

  /** The UUID of a worker that just asked for something, beside whatever else it asks for. */
  asked(worker: WorkerDescription, ask: WorkerAsk): Promise<string> {
    return this.#heard(worker, [ask], false);
  }

  /** The same of one that says all that it asks for. */
  asksAlone(worker: WorkerDescription, asks: readonly WorkerAsk[]): Promise<string> {
    return this.#heard(worker, asks, true);
  }

  async #heard(worker: WorkerDescription, asks: readonly WorkerAsk[], alone: boolean): Promise<string> {
    const description = JSON.stringify(worker);
    const ask = JSON.stringify(asks);
    const known = this.#known.get(worker.workerKey);
    if (
      known?.description === description &&
      performance.now() - (known.asks.get(ask) ?? -Infinity) < everyMs
    )
      return known.id;
    const save = {
      name: 'save-worker',
      text: saveSql,
      values: [
        newUuid(),
        worker.workerKey,
        worker.name,
        worker.client,
        worker.slots,
        JSON.stringify(asks.map(toRow)),
        alone,
      ],
    };
    const { rows } = await transactionByKey(this.#db, (tx) => tx.query<{ id: string }>(save));
    const id = rows[0]?.id ?? '';
    this.#remember(worker.workerKey, { id, description, ask });
    return id;
  }

  /** Forgetting all now and then only costs one write for each that is still there. */
  #remember(
    workerKey: string,
    { id, description, ask }: { id: string; description: string; ask: string },
  ): void {
    const known = this.#known.get(workerKey);
    const asks =
      known?.description === description && known.asks.size < rememberedAsks
        ? known.asks
        : new Map<string, number>();
    asks.set(ask, performance.now());
    if (this.#known.size >= remembered) this.#known.clear();
    this.#known.set(workerKey, { id, description, asks });
  }

  /** The worker left in good order. */
  async gone(workerKey: string): Promise<void> {
    this.#known.delete(workerKey);
    await this.#db.query({
      text: 'update runplane.workers set left_at = runplane.clock() where worker_key = $1',
      values: [workerKey],
    });
  }
}

const toRow = (ask: WorkerAsk): object => ({
  key: `\\x${digest(ask).toString('hex')}`,
  pool_id: ask.poolId,
  agent_ids: ask.agentIds,
});
