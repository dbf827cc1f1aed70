/*
 * Statements that insert rows in bulk, as the product would have written them one by one. Of what is past the change
 * log is left out, as if it had been purged.
 */

export interface ManyTasks {
  /** Names of agents, each with a job of its name; they take turns. */
  agents: readonly string[];
  count: number;
}

/** Ascending ids of version 7, as the product makes them; the letter keeps those of different tables apart. */
const id = (letter: string): string =>
  `(lpad(to_hex(1700000000000 + i), 12, '0') || '70008' || substr(md5('${letter}' || i), 1, 15))::uuid`;

const literal = (names: readonly string[]): string =>
  `array[${names.map((name) => `'${name.replaceAll("'", "''")}'`).join(', ')}]`;

/** The numbers from..from + count - 1, each with its agent, queue and job. */
const numbered = ({ agents, count }: ManyTasks, from: string): string => `
with lanes as materialized (
  select row_number() over (order by a.name) - 1 as lane, a.id as agent_id, a.queue_id, j.id as job_id, j.version
    from runplane.agents a join runplane.jobs j on j.name = a.name where a.name = any (${literal(agents)})),
numbered as (
  select i, l.* from generate_series(${from}, ${from} + ${count} - 1) i join lanes l on l.lane = i % ${agents.length})`;

const config = `'{"document": "s3://bucket/some/key.pdf", "page": 1}'::jsonb`;

/** Runs of one task that wait in their queues, in the order of their numbers, behind all that was there before. */
export function readyTasks(tasks: ManyTasks & { priority: number }): string[] {
  if (tasks.count === 0) return [];
  const from = '(select last_value + 1 from runplane.enqueue_order)';
  const rows = numbered(tasks, from);
  return [
    `${rows}
     insert into runplane.runs (id, job_id, job_version, config, correlation_id, priority, open_tasks, blocked_tasks, total_tasks, available_at, created_at)
     select ${id('r')}, job_id, version, ${config}, 'c' || i, ${tasks.priority}, 1, 0, 1, at, at
       from numbered cross join (select runplane.clock() as at offset 0) now`,
    `${rows}
     insert into runplane.tasks (id, run_id, step, agent_id, state, priority, rank, turn, available_at, created_at)
     select ${id('t')}, ${id('r')}, 'only', agent_id, 'OPEN', ${tasks.priority}, i, i, at, at
       from numbered cross join (select runplane.clock() as at offset 0) now`,
    `${rows}
     insert into runplane.ready_tasks (agent_id, priority_key, turn, rank, task_id, run_id, sequence, attempts, ready_at)
     select agent_id, ${-tasks.priority}, i, i, ${id('t')}, ${id('r')}, 1, 0, at
       from numbered cross join (select runplane.clock() as at offset 0) now`,
    `${rows}
     insert into runplane.change_log (run_id, task_id, sequence, to_status, at)
     select ${id('r')}, case when of_task then ${id('t')} end, 1, (case when of_task then 'ENQUEUED' else 'QUEUED' end)::runplane.logged_status, at
       from numbered cross join (values (false), (true)) o(of_task) cross join (select runplane.clock() as at offset 0) now`,
    `${rows}
     insert into runplane.customer_turns as c (agent_id, priority, customer, turn, given)
     select agent_id, ${tasks.priority}, '', max(i), 1 from numbered group by agent_id
     on conflict (agent_id, priority, customer) do update set turn = excluded.turn, given = 1`,
    `select setval('runplane.enqueue_order', (select last_value + ${tasks.count} from runplane.enqueue_order))`,
  ];
}

const firstPast = 1_000_000_000;

/** Runs of one task that one attempt completed. Their numbers are far from those of what is ready. */
export function pastTasks(tasks: ManyTasks): string[] {
  if (tasks.count === 0) return [];
  const rows = numbered(tasks, String(firstPast));
  return [
    `${rows}
     insert into runplane.runs (id, job_id, job_version, status, config, correlation_id, priority, open_tasks, blocked_tasks, total_tasks,
                                sequence, available_at, created_at, started_at, finished_at)
     select ${id('r')}, job_id, version, 'COMPLETED', ${config}, 'c' || i, 0, 0, 0, 1, 3, at, at, at, at
       from numbered cross join (select runplane.clock() as at offset 0) now`,
    `${rows}
     insert into runplane.tasks (id, run_id, step, agent_id, state, priority, rank, turn, output, sequence, available_at, created_at, finished_at)
     select ${id('t')}, ${id('r')}, 'only', agent_id, 'COMPLETED', 0, 0, 0, '{"done": true}', 3, at, at, at
       from numbered cross join (select runplane.clock() as at offset 0) now`,
    `${rows}
     insert into runplane.attempts (id, task_id, run_id, number, status, counted, worker_id, started_at, finished_at)
     select ${id('a')}, ${id('t')}, ${id('r')}, 1, 'COMPLETED', true, ${id('w')}, at, at
       from numbered cross join (select runplane.clock() as at offset 0) now`,
  ];
}

/** Past tasks, each with the event that launched it, what it produced, and a record of the knowledge pipeline. */
export function pastTraces(tasks: ManyTasks): string[] {
  const rows = numbered(tasks, String(firstPast));
  return [
    ...pastTasks(tasks),
    `${rows}
     insert into runplane.events (id, topic, correlation_id, source, payload, received_at)
     select ${id('e')}, 'past', 'c' || i, 'GRAPHQL', ${config}, at from numbered cross join (select runplane.clock() as at offset 0) now`,
    `insert into runplane.assets (id, key) values (gen_random_uuid(), 'past') on conflict (key) do nothing`,
    `${rows}
     insert into runplane.materializations (id, asset_id, run_id, task_id, attempt_id, correlation_id, at)
     select ${id('m')}, s.id, ${id('r')}, ${id('t')}, ${id('a')}, 'c' || i, at
       from numbered join runplane.assets s on s.key = 'past' cross join (select runplane.clock() as at offset 0) now`,
    `${rows}
     insert into runplane.knowledge_events (event_id, event_type, correlation_id, pipeline_id, created_at)
     select 'past-' || i, 'embedding', 'c' || i, 'past', at from numbered cross join (select runplane.clock() as at offset 0) now`,
  ];
}

/** The correlation id of one of the past traces, from 0. */
export const pastCorrelationId = (n: number): string => `c${firstPast + n}`;
