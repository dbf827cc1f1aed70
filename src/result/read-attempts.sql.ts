import { type JsonColumns, jsonColumns, rowsOf } from '../db/json-columns.ts';
import type { Queryable } from '../db/pool.ts';
import { groupBy } from '../domain/group-by.ts';
import { type AttemptHistory, defaultRetryPolicy, type RetryPolicy } from '../domain/retry-policy.ts';
import type { AttemptStatus, TaskState } from '../domain/status.ts';

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
  task: TaskState;
  /** Whether any attempt of the task holds its lease. */
  leased: boolean;
  step: string;
  agentId: string;
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

const ofTask = {
  taskId: 't.id',
  task: 't.state',
  step: 't.step',
  agentId: 't.agent_id',
  serialKey: 't.serial_key',
  optional: 't.optional',
  runId: 't.run_id',
};
const leasedColumns: Readonly<Record<keyof LeasedAttempt, string>> = {
  attemptId: 'l.attempt_id',
  number: 'l.number',
  sequence: 'l.sequence',
  ...ofTask,
  unfinished: `case when l.attempt_id = any($2) then json_build_object(
         'cancelRequested', l.cancel_deadline is not null,
         'leaseExpired', coalesce(l.expires_at < now.at or l.cancel_deadline < now.at, false),
         'timedOut', coalesce(l.timeout_at <= now.at, false),
         'maxAttempts', t.max_attempts,
         'attemptsForgiven', t.attempts_forgiven,
         'retryPolicy', (select ag.retry_policy from runplane.agents ag where ag.id = l.agent_id)) end`,
};

// What only matters to an attempt that did not complete is read for those only. Leases and agents are looked up one by
// one and not joined: no plan can go through all leases, nor begin with the agent.
const readLeasedSql = `
with now as materialized (select runplane.clock() as at)
select json_build_object(${jsonColumns(leasedColumns)}) as attempts
  from now cross join unnest($1::uuid[]) given(id)
  cross join lateral (select s.* from runplane.leases s where s.attempt_id = given.id offset 0) l
  join runplane.tasks t on t.id = l.task_id
having count(*) > 0`;

const readUnleasedSql = `
select a.id as "attemptId", a.status as attempt, a.result_digest as "reportedDigest", a.number, t.sequence,
       exists (select from runplane.leases x where x.task_id = t.id offset 0) as leased,
       ${Object.entries(ofTask)
         .map(([name, column]) => `${column} as "${name}"`)
         .join(', ')}
  from runplane.attempts a join runplane.tasks t on t.id = a.task_id
 where a.id = any($1)`;

const lockLeasesSql = `
select from runplane.leases l where l.attempt_id = any($1) order by l.attempt_id for update`;

/**
 * Keeps heartbeats away from leases that are about to end: one that was answered as held must not be lost, and what it told
 * must not stay behind. In the order in which heartbeats lock them, and in a statement of its own, because one that waits
 * for a heartbeat still sees the lease as it was before.
 */
export async function lockLeases(tx: Queryable, attemptIds: readonly string[]): Promise<void> {
  if (attemptIds.length === 0) return;
  await tx.query({ name: 'lock-leases', text: lockLeasesSql, values: [attemptIds], readsOnly: true });
}

type Unfinished = Pick<
  AttemptRow,
  'cancelRequested' | 'leaseExpired' | 'timedOut' | 'attemptsForgiven' | 'retryPolicy'
> & { maxAttempts: number | null };
type Identity = Omit<AttemptRow, keyof Unfinished | 'attempt' | 'leased' | 'reportedDigest'>;
interface LeasedAttempt extends Identity {
  unfinished: Unfinished | null;
}
type UnleasedAttempt = Identity & Pick<AttemptRow, 'attempt' | 'leased' | 'reportedDigest'>;

/** The attempts with their tasks; what decides whether a task is repeated is read for those that may be. */
export async function readAttempts(
  tx: Queryable,
  attemptIds: readonly string[],
  mayBeRepeated: readonly string[],
): Promise<AttemptRow[]> {
  const { rows } = await tx.query<{ attempts: JsonColumns<LeasedAttempt> }>({
    name: 'read-leased-attempts',
    text: readLeasedSql,
    values: [attemptIds, mayBeRepeated],
    readsOnly: true,
  });
  const attempts = rows
    .flatMap(({ attempts: leased }) => rowsOf<LeasedAttempt>(leased))
    .map((row) => attemptRow(row, 'RUNNING', null, true, row.unfinished));
  if (attempts.length === attemptIds.length) return attempts;
  const known = new Set(attempts.map(({ attemptId }) => attemptId));
  const unleased = await tx.query<UnleasedAttempt & Record<string, unknown>>({
    name: 'read-unleased-attempts',
    text: readUnleasedSql,
    values: [attemptIds.filter((id) => !known.has(id))],
  });
  for (const row of unleased.rows)
    attempts.push(attemptRow(row, row.attempt, row.reportedDigest, row.leased, null));
  return attempts;
}

/** Field by field, so that all rows have one shape and none is copied as a whole. */
function attemptRow(
  row: Identity,
  attempt: AttemptStatus,
  reportedDigest: Buffer | null,
  leased: boolean,
  unfinished: Unfinished | null,
): AttemptRow {
  const retryPolicy = unfinished?.retryPolicy ?? defaultRetryPolicy;
  return {
    attemptId: row.attemptId,
    attempt,
    reportedDigest,
    number: row.number,
    sequence: row.sequence,
    taskId: row.taskId,
    task: row.task,
    leased,
    step: row.step,
    agentId: row.agentId,
    serialKey: row.serialKey,
    optional: row.optional,
    runId: row.runId,
    retryPolicy,
    maxAttempts: unfinished?.maxAttempts ?? retryPolicy.maxAttempts,
    attemptsForgiven: unfinished?.attemptsForgiven ?? 0,
    cancelRequested: unfinished?.cancelRequested ?? false,
    leaseExpired: unfinished?.leaseExpired ?? false,
    timedOut: unfinished?.timedOut ?? false,
  };
}

const historySql = `
select task_id as "taskId", number, status, counted from runplane.attempts where task_id = any($1) order by task_id, number`;

interface PastAttempt {
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
  const { rows } = await tx.query<PastAttempt & Record<string, unknown>>({
    name: 'read-histories',
    text: historySql,
    values: [tasks.map((task) => task.taskId)],
  });
  const byTask = groupBy(rows, (attempt) => attempt.taskId);
  return new Map(
    tasks.map(({ taskId, attemptsForgiven }) => [
      taskId,
      historyOf((byTask.get(taskId) ?? []).filter((attempt) => attempt.number > attemptsForgiven)),
    ]),
  );
}

function historyOf(attempts: readonly PastAttempt[]): AttemptHistory {
  return {
    counted: attempts.filter((attempt) => attempt.counted).length,
    // Lost leases have a bound of their own: they neither count here nor break the row.
    uncountedInRow: attempts
      .slice(attempts.findLastIndex((a) => a.counted) + 1)
      .filter((a) => a.status !== 'LOST').length,
    lostInRow: attempts.length - 1 - attempts.findLastIndex((attempt) => attempt.status !== 'LOST'),
  };
}
