import type { Database } from '../db/pool.ts';
import { newUuid } from '../domain/ids.ts';

export interface WorkerDescription {
  /** Names the process, fresh at each start. */
  workerKey: string;
  name: string;
  client: string | null;
  agents: readonly string[];
  pools: readonly string[];
  slots: number | null;
}

const saveSql = `
insert into runplane.workers (id, worker_key, name, client, agents, pools, slots) values ($1, $2, $3, $4, $5, $6, $7)
on conflict (worker_key) do update set name = excluded.name, client = excluded.client, agents = excluded.agents,
  pools = excluded.pools, slots = excluded.slots, last_seen_at = excluded.last_seen_at, left_at = null
returning id`;

/** How often a worker that is heard all the time is written down. */
const everyMs = 10_000;
const remembered = 10_000;

/** The workers that this process hears of, in the table that all replicas see. */
export class WorkerRegistry {
  readonly #db: Database;
  readonly #known = new Map<string, { id: string; description: string; at: number }>();

  constructor(db: Database) {
    this.#db = db;
  }

  /** The UUID of a worker that was just heard of. */
  async seen(worker: WorkerDescription): Promise<string> {
    const description = JSON.stringify(worker);
    const known = this.#known.get(worker.workerKey);
    if (known && known.description === description && performance.now() - known.at < everyMs) return known.id;
    const { rows } = await this.#db.query<{ id: string }>({
      name: 'save-worker',
      text: saveSql,
      values: [
        newUuid(),
        worker.workerKey,
        worker.name,
        worker.client,
        worker.agents,
        worker.pools,
        worker.slots,
      ],
    });
    const id = rows[0]?.id ?? '';
    // Forgetting all now and then only costs one write for each that is still there.
    if (this.#known.size >= remembered) this.#known.clear();
    this.#known.set(worker.workerKey, { id, description, at: performance.now() });
    return id;
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
