import type { JobStepInput } from '../../src/operator/types.ts';
import { at, stopClock } from '../support/clock.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { type AgentKind, agents, type JobKind, type JobName, jobs, leaseSeconds } from './kinds.ts';
import type { LifecycleModel } from './lifecycle-model.ts';
import { publicStatus } from './lifecycle-rules.ts';

/** Two processes' worth of services on one database whose time is the model's. */
export async function startPlanes(): Promise<[ControlPlane, ControlPlane]> {
  const plane = await ControlPlane.start();
  await setClock(plane, 0);
  // Nothing here ends the database, so no commit needs to wait for the disk.
  await plane.rows(
    `do $$ begin execute format('alter database %I set synchronous_commit = off', current_database()); end $$`,
  );
  for (const [name, agent] of Object.entries(agents) as [string, AgentKind][]) {
    await plane.agent(name, {
      leaseSeconds,
      dispatch: { pull: { batchBySerialKey: agent.batches ?? false } },
      timeoutSeconds: agent.timeoutSeconds,
      retryPolicy: {
        backoff: 'FIXED',
        jitter: 0,
        maxAttempts: agent.maxAttempts,
        initialDelaySeconds: agent.delaySeconds,
        maxDelaySeconds: agent.delaySeconds,
        overrides: agent.overrides,
      },
    });
  }
  for (const [name, job] of Object.entries(jobs) as [string, JobKind][]) {
    const steps = job.steps.map(
      ({ dependsOn, serialKey: _, ...step }): JobStepInput => ({
        ...step,
        dependsOn: dependsOn ? [dependsOn] : [],
      }),
    );
    await plane.job(name, steps);
  }
  return [plane, await ControlPlane.start({ database: plane.database })];
}

const forgetSql = `
delete from runplane.ready_tasks; delete from runplane.delayed_tasks; delete from runplane.serial_tasks;
delete from runplane.leases; delete from runplane.attempts; delete from runplane.dead_letters; delete from runplane.change_log;
delete from runplane.tasks; delete from runplane.runs; delete from runplane.task_progress`;

export async function forgetWork(plane: ControlPlane): Promise<void> {
  await plane.rows(forgetSql);
  await setClock(plane, 0);
}

/** Each second of the model is one of the database's clock, which stands still in between. */
export const setClock = (plane: ControlPlane, seconds: number): Promise<void> =>
  stopClock(plane.database.db, at(seconds));

/** Launches a run in the database and in the model. */
export async function launch(plane: ControlPlane, model: LifecycleModel, name: JobName): Promise<void> {
  const job: JobKind = jobs[name];
  const later = job.later ?? 0;
  const runId = await plane.launch(name, {
    steps: job.steps.map(({ name: step, maxAttempts, serialKey }) => ({ step, maxAttempts, serialKey })),
    ...(later > 0 && { availableAt: at(model.now + later) }),
  });
  const rows = await plane.rows<{ id: string; step: string }>(
    'select id, step from runplane.tasks where run_id = $1',
    [runId],
  );
  const tasks = job.steps.map((step) => ({ id: rows.find((row) => row.step === step.name)?.id ?? '', step }));
  model.launch(runId, tasks, later);
}

// A task that is nowhere or in two places has no state here.
const stateSql = `
select json_build_object(
  'tasks', (select json_object_agg(t.id, json_build_object(
    'state', case when t.state <> 'OPEN' then lower(t.state::text)
      when l.task_id is not null and r.task_id is null and d.task_id is null then case when l.cancel_deadline is null then 'processing' else 'stopping' end
      when r.task_id is not null and d.task_id is null then 'ready'
      when d.task_id is not null then 'delayed'
      when s.task_id is not null then 'behind' end,
    'priority', coalesce(-r.priority_key, t.priority),
    'deleted', t.deleted_at is not null,
    'sequence', case when t.state = 'OPEN' then coalesce(l.sequence, r.sequence, d.sequence, s.sequence) else t.sequence end,
    'attempts', (select coalesce(json_agg(json_build_array(a.number, a.status, a.counted, a.late) order by a.number), '[]') from (
      select number, status::text, counted, late from runplane.attempts a where a.task_id = t.id
      union all select l.number, 'RUNNING', false, false where l.task_id is not null) a),
    'letter', (select json_build_array(d.fail_count, d.replayed_at is not null) from runplane.dead_letters d where d.task_id = t.id),
    'logged', (select array_agg(c.to_status order by c.sequence) from runplane.change_log c where c.task_id = t.id)))
    from runplane.tasks t
    left join runplane.leases l on l.task_id = t.id left join runplane.ready_tasks r on r.task_id = t.id
    left join runplane.delayed_tasks d on d.task_id = t.id left join runplane.serial_tasks s on s.task_id = t.id),
  'runs', (select json_object_agg(id, status) from runplane.runs),
  'keys', (select coalesce(json_object_agg(k.name, k.tasks), '{}') from (
    select a.name, json_agg(s.task_id order by s.rank) as tasks from runplane.serial_tasks s join runplane.agents a on a.id = s.agent_id group by 1) k)) as state`;

interface State {
  tasks: Record<
    string,
    {
      priority: number;
      deleted: boolean;
      state: string;
      sequence: number;
      attempts: unknown[];
      letter: unknown;
      logged?: string[];
    }
  >;
  runs: Record<string, string>;
  /** The order of each agent's one serial key. */
  keys: Record<string, string[]>;
}

export async function storedState(plane: ControlPlane): Promise<State> {
  const [row] = await plane.rows<{ state: State }>(stateSql);
  const state = row?.state ?? { tasks: {}, runs: {}, keys: {} };
  for (const [id, { logged, sequence, ...task }] of Object.entries(state.tasks)) {
    if (logged?.length !== sequence || logged.at(-1) !== publicStatus(task.state as never))
      throw new Error(`The change log of a ${task.state} task, at ${sequence}, says ${logged?.join(', ')}.`);
    state.tasks[id] = { ...task, sequence };
  }
  return state;
}

export const modelState = (model: LifecycleModel): State => ({
  tasks: Object.fromEntries(
    model.tasks.map(({ id, state, priority, deleted, sequence, attempts, letter }) => [
      id,
      {
        state,
        priority,
        deleted,
        sequence,
        attempts: attempts.map((a) => [a.number, a.status, a.counted, a.late]),
        letter: letter && [letter.failCount, letter.replayed],
      },
    ]),
  ),
  runs: Object.fromEntries(model.runs.map(({ id, status }) => [id, status])),
  keys: Object.fromEntries(Object.entries(model.keys).filter(([, tasks]) => tasks.length > 0)),
});
