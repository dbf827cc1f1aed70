import type { Database } from '../db/pool.ts';
import { statement } from '../db/transaction.ts';
import { newUuid } from '../domain/ids.ts';

/** A lease with what its execution needs, as the view assignments gives it. */
export interface ClaimedTask {
  attemptId: string;
  taskId: string;
  runId: string;
  agentId: string;
  agent: string;
  handler: string | null;
  step: string;
  number: number;
  input: unknown;
  labels: Record<string, string>;
  customer: string | null;
  correlationId: string;
  eventId: string | null;
  serialKey: string | null;
  checkpoint: unknown;
  leaseSeconds: number;
  timeoutSeconds: number | null;
  startedAt: Date;
  expiresAt: Date;
  /** Packed. */
  traceContext: string | null;
}

export interface ClaimRequest {
  agentIds: readonly string[];
  limit: number;
  /** UUID of the worker's row. */
  workerId: string;
  /** A repeated claim with the same worker and key gives the same live leases again. Empty: a pull worker that gave none. Null: this server. */
  claimKey: string | null;
  /** The pool whose slots they take, which weighs the queues; null when the agents were named without one. */
  poolId: string | null;
  /** Null: as the agent says. */
  leaseSeconds: number | null;
}

// The function claim_tasks (drizzle/0003_claim.sql) locks, counts and claims in statements of their own. The tasks come
// as one JSON document: reading hundreds of rows of that many columns costs the process more than the work around them.
const claimSql = `
select json_agg(c) as tasks from (
select attempt_id as "attemptId", task_id as "taskId", run_id as "runId", agent_id as "agentId", agent, handler, step, number, input, labels,
       customer, correlation_id as "correlationId", event_id as "eventId", serial_key as "serialKey", checkpoint,
       lease_seconds as "leaseSeconds", timeout_seconds as "timeoutSeconds", started_at as "startedAt", expires_at as "expiresAt",
       encode(trace_context, 'hex') as "traceContext"
  from runplane.claim_tasks($1, $2, $3, $4, $5, $6)) c`;

/** Claims the best tasks of these agents, at most limit, never above a concurrency limit over all replicas. */
export async function claimTasks(db: Database, request: ClaimRequest): Promise<ClaimedTask[]> {
  const attemptIds = Array.from({ length: request.limit }, newUuid);
  const { rows } = await statement<{ tasks: ClaimedTask[] | null }>(db, {
    name: 'claim-tasks',
    text: claimSql,
    values: [
      request.agentIds,
      attemptIds,
      request.workerId,
      request.claimKey,
      request.leaseSeconds,
      request.poolId,
    ],
  });
  const tasks = rows[0]?.tasks ?? [];
  // In place: a copy of each would be a good part of the work.
  for (const task of tasks) {
    task.startedAt = new Date(task.startedAt);
    task.expiresAt = new Date(task.expiresAt);
  }
  return tasks;
}
