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

const columns = `
t.id as "taskId", t.state as task, t.step, t.agent_id as "agentId", t.priority, t.serial_key as "serialKey", t.optional,
t.max_attempts as "maxAttempts", t.attempts_forgiven as "attemptsForgiven", t.run_id as "runId"`;

// Rows for hundreds of attempts come as one JSON document, which is read faster than as many rows. The agent's policy is
// looked up for those only that may have to be repeated, and not joined, so that no plan can begin with the agent and go
// through all of its leases.
const readLeasedSql = `
with now as materialized (select runplane.clock() as at)
select json_agg(x) as attempts from (
select l.attempt_id as "attemptId", 'RUNNING' as attempt, null as "reportedDigest", l.number, l.sequence, true as leased,
       l.cancel_deadline is not null as "cancelRequested",
       coalesce(l.expires_at < now.at or l.cancel_deadline < now.at, false) as "leaseExpired",
       coalesce(l.timeout_at <= now.at, false) as "timedOut",
       case when l.attempt_id = any($2) then (select ag.retry_policy from runplane.agents ag where ag.id = l.agent_id) end as "retryPolicy",
       ${columns}
  from now cross join runplane.leases l join runplane.tasks t on t.id = l.task_id
 where l.attempt_id = any($1)) x`;

const readEndedSql = `
select a.id as "attemptId", a.status as attempt, a.result_digest as "reportedDigest", a.number, t.sequence,
       exists (select from runplane.leases x where x.task_id = t.id) as leased,
       false as "cancelRequested", false as "leaseExpired", false as "timedOut", null as "retryPolicy", ${columns}
  from runplane.attempts a join runplane.tasks t on t.id = a.task_id
 where a.id = any($1)`;

interface StoredAttempt extends Omit<AttemptRow, 'retryPolicy' | 'maxAttempts'> {
  retryPolicy: Partial<RetryPolicy> | null;
  maxAttempts: number | null;
}

/** The attempts with their tasks. The retry policy is read for those that may be repeated; others get the default. */
export async function readAttempts(
  tx: Queryable,
  attemptIds: readonly string[],
  mayBeRepeated: readonly string[],
): Promise<AttemptRow[]> {
  const leased = await tx.query<{ attempts: StoredAttempt[] | null }>({
    name: 'read-leased-attempts',
    text: readLeasedSql,
    values: [attemptIds, mayBeRepeated],
  });
  const attempts = leased.rows[0]?.attempts ?? [];
  if (attempts.length < attemptIds.length) {
    const known = new Set(attempts.map(({ attemptId }) => attemptId));
    const ended = await tx.query<StoredAttempt & Record<string, unknown>>({
      name: 'read-ended-attempts',
      text: readEndedSql,
      values: [attemptIds.filter((id) => !known.has(id))],
    });
    attempts.push(...ended.rows);
  }
  return attempts.map((row) => {
    const retryPolicy = { ...defaultRetryPolicy, ...row.retryPolicy };
    return { ...row, retryPolicy, maxAttempts: row.maxAttempts ?? retryPolicy.maxAttempts };
  });
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
