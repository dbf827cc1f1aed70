import type { Queryable } from '../db/pool.ts';
import { type AttemptHistory, defaultRetryPolicy, type RetryPolicy } from '../domain/retry-policy.ts';
import type { AttemptStatus } from '../domain/status.ts';

/** An attempt with its task, run and agent, as they are under the run's lock. */
export interface AttemptRow {
  attemptId: string;
  /** RUNNING while it holds the lease. */
  attempt: AttemptStatus;
  reportedDigest: Buffer | null;
  number: number;
  /** Of the task, as the lease carries it. */
  sequence: number;
  taskId: string;
  task: 'BLOCKED' | 'OPEN' | 'COMPLETED' | 'FAILED' | 'CANCELLED';
  /** Whether any attempt of the task holds its lease. */
  leased: boolean;
  step: string;
  agentId: string;
  priority: number;
  serialKey: string | null;
  optional: boolean;
  maxAttempts: number;
  attemptsForgiven: number;
  retryPolicy: RetryPolicy;
  cancelRequested: boolean;
  leaseExpired: boolean;
  timedOut: boolean;
  runId: string;
}

export interface LockedRun {
  id: string;
  status: string;
  jobId: string;
  jobVersion: number;
  openTasks: number;
  blockedTasks: number;
  totalTasks: number;
  sequence: number;
  cancelRequested: boolean;
}

// The run's lock comes first and in id order: every change of a task but its claim happens under it.
const lockRunsSql = `
select r.id, r.status, r.job_id as "jobId", r.job_version as "jobVersion", r.open_tasks as "openTasks",
       r.blocked_tasks as "blockedTasks", r.total_tasks as "totalTasks", r.sequence,
       r.cancel_requested_at is not null as "cancelRequested"
  from runplane.runs r
 where r.id = any(array(
   select l.run_id from runplane.leases l where l.attempt_id = any($1)
   union
   select a.run_id from runplane.attempts a where a.id = any($1)))
 order by r.id for no key update`;

export async function lockRunsOf(
  tx: Queryable,
  attemptIds: readonly string[],
): Promise<Map<string, LockedRun>> {
  const { rows } = await tx.query<LockedRun & Record<string, unknown>>({
    name: 'lock-runs-of-attempts',
    text: lockRunsSql,
    values: [attemptIds],
  });
  return new Map(rows.map((run) => [run.id, run]));
}

const readAttemptsSql = `
with now as materialized (select runplane.clock() as at)
select g.id as "attemptId", coalesce(a.status::text, 'RUNNING') as attempt, a.result_digest as "reportedDigest",
       coalesce(l.number, a.number) as number, coalesce(l.sequence, t.sequence) as sequence,
       t.id as "taskId", t.state as task, exists (select from runplane.leases x where x.task_id = t.id) as leased, t.step, t.agent_id as "agentId", t.priority, t.serial_key as "serialKey", t.optional,
       coalesce(t.max_attempts, (ag.retry_policy ->> 'maxAttempts')::int) as "maxAttempts",
       t.attempts_forgiven as "attemptsForgiven", ag.retry_policy as "retryPolicy",
       l.cancel_deadline is not null as "cancelRequested",
       coalesce(l.expires_at < now.at or l.cancel_deadline < now.at, false) as "leaseExpired",
       coalesce(l.timeout_at <= now.at, false) as "timedOut", t.run_id as "runId"
  from unnest($1::uuid[]) g(id)
  left join runplane.leases l on l.attempt_id = g.id
  left join runplane.attempts a on a.id = g.id
  join runplane.tasks t on t.id = coalesce(l.task_id, a.task_id)
  join runplane.agents ag on ag.id = t.agent_id
  cross join now`;

export async function readAttempts(tx: Queryable, attemptIds: readonly string[]): Promise<AttemptRow[]> {
  const { rows } = await tx.query<AttemptRow & Record<string, unknown>>({
    name: 'read-attempts',
    text: readAttemptsSql,
    values: [attemptIds],
  });
  return rows.map((row) => ({ ...row, retryPolicy: { ...defaultRetryPolicy, ...row.retryPolicy } }));
}

const historySql = `
select task_id as "taskId", number, status, counted from runplane.attempts where task_id = any($1) order by task_id, number`;

interface EndedAttempt {
  taskId: string;
  number: number;
  status: AttemptStatus;
  counted: boolean;
}

/** What earlier attempts of these tasks amount to; those before an operator's retry are forgiven. */
export async function readHistories(
  tx: Queryable,
  tasks: readonly Pick<AttemptRow, 'taskId' | 'attemptsForgiven'>[],
): Promise<Map<string, AttemptHistory>> {
  if (tasks.length === 0) return new Map();
  const { rows } = await tx.query<EndedAttempt & Record<string, unknown>>({
    name: 'read-histories',
    text: historySql,
    values: [tasks.map((task) => task.taskId)],
  });
  const byTask = groupByTask(rows);
  return new Map(
    tasks.map(({ taskId, attemptsForgiven }) => [
      taskId,
      historyOf((byTask.get(taskId) ?? []).filter((attempt) => attempt.number > attemptsForgiven)),
    ]),
  );
}

function groupByTask(rows: readonly EndedAttempt[]): Map<string, EndedAttempt[]> {
  const groups = new Map<string, EndedAttempt[]>();
  for (const row of rows) groups.set(row.taskId, [...(groups.get(row.taskId) ?? []), row]);
  return groups;
}

function historyOf(attempts: readonly EndedAttempt[]): AttemptHistory {
  return {
    counted: attempts.filter((attempt) => attempt.counted).length,
    // Lost leases have a bound of their own: they neither count here nor break the row.
    uncountedInRow: attempts
      .slice(attempts.findLastIndex((a) => a.counted) + 1)
      .filter((a) => a.status !== 'LOST').length,
    lostInRow: attempts.length - 1 - attempts.findLastIndex((attempt) => attempt.status !== 'LOST'),
  };
}
