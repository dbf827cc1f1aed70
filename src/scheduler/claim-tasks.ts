import { type JsonColumns, jsonColumns, rowsOf } from '../db/json-columns.ts';
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
// as one JSON document, column by column: rows of that many columns cost both sides more than the work around them.
const columns: Readonly<Record<keyof ClaimedTask, string>> = {
  attemptId: 'attempt_id',
  taskId: 'task_id',
  runId: 'run_id',
  agentId: 'agent_id',
  agent: 'agent',
  handler: 'handler',
  step: 'step',
  number: 'number',
  input: 'input',
  labels: 'labels',
  customer: 'customer',
  correlationId: 'correlation_id',
  eventId: 'event_id',
  serialKey: 'serial_key',
  checkpoint: 'checkpoint',
  leaseSeconds: 'lease_seconds',
  timeoutSeconds: 'timeout_seconds',
  startedAt: 'started_at',
  expiresAt: 'expires_at',
  traceContext: `encode(trace_context, 'hex')`,
};
const claimSql = `
select json_build_object(${jsonColumns(columns)}) as tasks
  from runplane.claim_tasks($1, $2, $3, $4, $5, $6) having count(*) > 0`;

/** Claims the best tasks of these agents, at most limit, never above a concurrency limit over all replicas. */
export async function claimTasks(db: Database, request: ClaimRequest): Promise<ClaimedTask[]> {
  const attemptIds = Array.from({ length: request.limit }, newUuid);
  const { rows } = await statement<{ tasks: JsonColumns<ClaimedTask> }>(db, {
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
  return rows.flatMap(({ tasks }) =>
    rowsOf<ClaimedTask>(tasks).map((task) => ({
      ...task,
      startedAt: new Date(task.startedAt),
      expiresAt: new Date(task.expiresAt),
    })),
  );
}
