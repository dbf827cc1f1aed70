import type { Queryable } from '../db/pool.ts';

const readSql = `
select a.id, q.name from runplane.agents a join runplane.queues q on q.id = a.queue_id where a.id = any($1)`;

const keptMs = 10_000;

/** The queues of agents, remembered for 10 s: an agent is seldom moved to another one. */
export class QueueNames {
  readonly #db: () => Queryable;
  readonly #known = new Map<string, { name: string | null; until: number }>();

  constructor(db: () => Queryable) {
    this.#db = db;
  }

  async of(agentIds: readonly string[]): Promise<ReadonlyMap<string, string | null>> {
    const now = performance.now();
    const unknown = [...new Set(agentIds)].filter((id) => !((this.#known.get(id)?.until ?? 0) > now));
    if (unknown.length > 0) {
      const { rows } = await this.#db().query<{ id: string; name: string }>({
        name: 'queues-of-agents',
        text: readSql,
        values: [unknown],
      });
      const names = new Map(rows.map(({ id, name }) => [id, name]));
      for (const id of unknown) this.#known.set(id, { name: names.get(id) ?? null, until: now + keptMs });
    }
    return new Map(agentIds.map((id) => [id, this.#known.get(id)?.name ?? null]));
  }
}
