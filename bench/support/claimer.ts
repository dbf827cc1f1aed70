import { newUuid } from '../../src/domain/ids.ts';
import { parseReport } from '../../src/result/parse-result.ts';
import { type ClaimedTask, claimTasks } from '../../src/scheduler/claim-tasks.ts';
import type { Services } from '../../src/services.ts';
import { launchAll, startProduct } from './product.ts';

/** What is measured alone: claims of a given size, and the completion of what they brought. */
export interface Claimer<Job> {
  insert(count: number): Promise<void>;
  claim(limit: number): Promise<Job[]>;
  complete(jobs: readonly Job[]): Promise<void>;
  close(): Promise<void>;
}

const payload = { document: 's3://bucket/some/key.pdf', page: 1 };

/** Claims and completes by the services of a process that executes nothing itself. */
export class ProductClaimer implements Claimer<ClaimedTask> {
  readonly #services: Services;
  readonly #agents: readonly string[];
  readonly #agentIds: readonly string[];
  readonly #poolId: string;
  readonly #workerId = newUuid();
  #inserted = 0;

  private constructor(
    services: Services,
    agents: readonly string[],
    agentIds: readonly string[],
    poolId: string,
  ) {
    this.#services = services;
    this.#agents = agents;
    this.#agentIds = agentIds;
    this.#poolId = poolId;
  }

  /** Claims tasks of all agents, and inserts tasks of these. */
  static async start(url: string, agents: readonly string[]): Promise<ProductClaimer> {
    const services = await startProduct(url, null);
    const { rows } = await services.db.query<{ ids: string[]; poolId: string }>({
      text: `select (select array_agg(id) from runplane.agents) as ids, (select id from runplane.pools where name = 'core') as "poolId"`,
    });
    const [{ ids, poolId } = { ids: [], poolId: '' }] = rows;
    return new ProductClaimer(services, agents, ids, poolId);
  }

  async insert(count: number): Promise<void> {
    const job = (): string => this.#agents[this.#inserted++ % this.#agents.length] ?? '';
    await launchAll(
      this.#services,
      Array.from({ length: count }, () => ({ job: job(), config: payload })),
    );
  }

  claim(limit: number): Promise<ClaimedTask[]> {
    const of = { agentIds: this.#agentIds, workerId: this.#workerId, poolId: this.#poolId };
    return claimTasks(this.#services.db, { ...of, limit, claimKey: null, leaseSeconds: 3600 });
  }

  async complete(tasks: readonly ClaimedTask[]): Promise<void> {
    const recorded = await Promise.all(
      tasks.map(({ attemptId }) =>
        this.#services.results.record({
          attemptId,
          report: parseReport({ status: 'COMPLETED', output: { done: true } }, attemptId),
        }),
      ),
    );
    for (const { answer } of recorded)
      if (answer !== 'APPLIED') throw new Error(`a result was answered ${answer}`);
  }

  close(): Promise<void> {
    return this.#services.stop();
  }
}
