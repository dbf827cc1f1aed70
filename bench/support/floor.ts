import pg from 'pg';
import { onDatabase } from './server.ts';

/*
 * The floor: the least that a queue in Postgres can do and still be one. A job is one row that is updated when it is
 * claimed and when it is done. No attempts, limits, steps, runs, change log or answers to late workers.
 */

export interface FloorJob {
  id: string;
  payload: { probe?: number };
}

const payload = { document: 's3://bucket/some/key.pdf', page: 1 };

const claimSql = `
with best as (
  select id from jobs where state = 'ready' and due <= now() order by priority desc, id limit $1 for update skip locked)
update jobs j set state = 'claimed', leased_until = now() + interval '60 s', attempts = j.attempts + 1
  from best where j.id = best.id returning j.id, j.payload`;
const completeSql = `
update jobs set state = 'done', leased_until = null, output = '{"done": true}' where id = any ($1::bigint[]) and state = 'claimed'`;
const insertSql = 'insert into jobs (priority, payload) select $1, $2 from generate_series(1, $3)';

export async function createFloor(url: string): Promise<void> {
  await onDatabase(url, [
    `create table jobs (
       id bigint generated always as identity primary key, state text not null default 'ready', priority smallint not null,
       due timestamptz not null default now(), leased_until timestamptz, attempts int not null default 0,
       payload jsonb not null, output jsonb)`,
    `create index jobs_ready on jobs (priority desc, id) where state = 'ready'`,
    // Without it nobody finds the jobs of workers that are gone.
    `create index jobs_claimed on jobs (leased_until) where state = 'claimed'`,
  ]);
}

export class FloorQueue {
  readonly #pool: pg.Pool;

  constructor(url: string) {
    this.#pool = new pg.Pool({ connectionString: url, max: 10 });
  }

  async insert(
    count: number,
    { priority = 0, ...more }: { priority?: number; probe?: number } = {},
  ): Promise<void> {
    const values = [priority, JSON.stringify({ ...payload, ...more }), count];
    await this.#pool.query({ name: 'insert', text: insertSql, values });
    await this.#pool.query('notify jobs');
  }

  async claim(limit: number): Promise<FloorJob[]> {
    return (await this.#pool.query<FloorJob>({ name: 'claim', text: claimSql, values: [limit] })).rows;
  }

  async complete(jobs: readonly FloorJob[]): Promise<void> {
    await this.#pool.query({ name: 'complete', text: completeSql, values: [jobs.map(({ id }) => id)] });
  }

  close(): Promise<void> {
    return this.#pool.end();
  }
}

/** Works with so many slots and no buffer: it claims for free slots only, and completes at once what just ended. */
export async function workFloor(
  url: string,
  slots: number,
  handler: (job: FloorJob) => Promise<void>,
): Promise<() => Promise<void>> {
  const queue = new FloorQueue(url);
  const listener = new pg.Client({ connectionString: url });
  await listener.connect();
  let free = slots;
  let claiming = false;
  let stopped = false;
  let mayHaveMore = true;
  let ended: FloorJob[] = [];
  let writing: Promise<unknown> = Promise.resolve();
  let failed: Error | null = null;
  const fail = (error: unknown): void => {
    failed ??= error instanceof Error ? error : new Error(String(error));
    stopped = true;
  };
  const flush = (): void => {
    const jobs = ended;
    ended = [];
    writing = Promise.all([writing, queue.complete(jobs)]).catch(fail);
    claim();
  };
  const start = (job: FloorJob): void => {
    free--;
    handler(job).then(() => {
      free++;
      if (ended.push(job) === 1) setImmediate(flush);
    }, fail);
  };
  const claim = (): void => {
    if (claiming || stopped || free === 0 || !mayHaveMore) return;
    claiming = true;
    const limit = free;
    mayHaveMore = false;
    queue.claim(limit).then((jobs) => {
      claiming = false;
      if (jobs.length === limit) mayHaveMore = true;
      for (const job of jobs) start(job);
      claim();
    }, fail);
  };
  listener.on('notification', () => {
    mayHaveMore = true;
    claim();
  });
  await listener.query('listen jobs');
  claim();
  return async () => {
    stopped = true;
    while (free < slots || claiming) await new Promise((resolve) => setTimeout(resolve, 5));
    await writing;
    await listener.end();
    await queue.close();
    if (failed) throw failed;
  };
}
