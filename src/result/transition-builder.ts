import type { ExecutionError } from '../domain/execution-error.ts';
import type { Json } from '../domain/json.ts';
import type { RunStatus, TaskStatus } from '../domain/status.ts';
import type { SpawnedRow } from './check-spawn.ts';
import type { Decision } from './decide-result.ts';
import type { LockedRun } from './lock-runs.sql.ts';
import type { Report } from './parse-result.ts';
import type { AttemptRow } from './read-attempts.sql.ts';
import type { RunTask } from './read-run-tasks.sql.ts';
import type { FreshEnd } from './render-inputs.ts';
import { StepCounts } from './step-counts.ts';
import type { Place } from './take-places.sql.ts';
import { type AttemptEnd, enqueuedFirst, type Later, type TaskEnd, type Transition } from './transition.ts';

export interface EndedTask {
  taskId: string;
  state: 'COMPLETED' | 'FAILED' | 'CANCELLED';
  optional: boolean;
}

/** Collects what a group of decisions changes, so that it is written at once. */
export class TransitionBuilder {
  readonly transition: Transition = { attemptEnds: [], taskEnds: [], enqueued: [], runs: [] };
  /** Tasks that failed for good by their own doing. */
  readonly deadLetters: string[] = [];
  readonly endedSerialTasks: string[] = [];
  readonly freshEnds: FreshEnd[] = [];
  /** Spawned tasks, at least those of them. */
  readonly spawnedEnds = new Set<string>();
  readonly stepCounts = new StepCounts();
  /** Runs whose steps are to be counted when all is written. */
  readonly uncounted: string[] = [];
  /** Whether what fails now is done again, each end in a transaction of its own. */
  readonly repeatsAlone: boolean;
  readonly #ended = new Map<string, EndedTask[]>();
  readonly #statuses = new Map<string, TaskStatus>();
  readonly #unblocked = new Map<string, number>();
  readonly #spawned = new Map<string, { total: number; blocked: number }>();

  constructor({ repeatsAlone = false } = {}) {
    this.repeatsAlone = repeatsAlone;
  }

  addDecision(row: AttemptRow, report: Report | null, decision: Decision, place: Place | undefined): void {
    if (decision.answer !== 'APPLIED') return;
    if (decision.late) {
      this.#completeLate(row, report, place);
      return;
    }
    const { task, error } = decision;
    const end: AttemptEnd = {
      attempt_id: row.attemptId,
      status: decision.attempt,
      counted: decision.counted || undefined,
      sanitized: report?.sanitized || undefined,
      digest: report?.digest,
      error_code: error?.code,
      error_kind: error?.kind,
      error_message: error?.message ?? undefined,
      confidence: report?.confidence ?? undefined,
      trace_id: report?.traceId ?? undefined,
      external_run_id: report?.externalRunId ?? undefined,
    };
    this.transition.attemptEnds.push(end);
    if (task.to !== 'ENQUEUED') {
      const output = task.to === 'COMPLETED' && report ? { value: report.output } : null;
      end.task_to = task.to;
      end.output = output ?? undefined;
      this.#follow(row, task.to, output, task.to === 'FAILED' ? task.error : null);
      if (task.to === 'FAILED') this.deadLetters.push(row.taskId);
      return;
    }
    this.#statuses.set(row.taskId, 'ENQUEUED');
    this.transition.enqueued.push({
      task_id: row.taskId,
      run_id: row.runId,
      agent_id: row.agentId,
      from_status: 'PROCESSING',
      sequence: row.sequence + 1,
      attempts: row.number,
      attempt_id: row.attemptId,
      attempt_number: row.number,
      delay_seconds: task.delaySeconds,
      delay_reason: 'RETRY_BACKOFF',
      input: null,
      error_code: task.error?.code ?? null,
      reason: decision.attempt,
    });
  }

  /** Tasks that a result spawned. They are inserted; those that are not blocked take their places. */
  addSpawned(rows: readonly SpawnedRow[], delays: ReadonlyMap<string, number>): void {
    for (const row of rows) {
      const { total, blocked } = this.spawnedIn(row.run_id);
      const isBlocked = row.depends_on !== null;
      this.#spawned.set(row.run_id, { total: total + 1, blocked: blocked + (isBlocked ? 1 : 0) });
      if (isBlocked) continue;
      const delaySeconds = delays.get(row.id) ?? 0;
      const later =
        row.available_at !== null && delaySeconds > 0 ? { at: row.available_at, delaySeconds } : null;
      const task = { id: row.id, runId: row.run_id, agentId: row.agent_id };
      this.transition.enqueued.push(enqueuedFirst(task, { from: null, sequence: 1, input: null, later }));
    }
  }

  /** A blocked step that will never run. */
  failBlocked(task: RunTask, error: ExecutionError): void {
    this.#end(
      { ...task, taskId: task.id, attemptId: null, number: null },
      'BLOCKED',
      task.sequence,
      error,
      'FAILED',
      null,
    );
    this.#countUnblocked(task.runId);
    if (error.code !== 'DEPENDENCY_FAILED') this.deadLetters.push(task.id);
  }

  /** A task that nobody executes is cancelled. */
  cancelWaiting(
    task: Pick<RunTask, 'id' | 'runId' | 'step' | 'serialKey' | 'optional'>,
    from: TaskStatus,
    sequence: number,
    reason: string | null,
  ): void {
    this.#end(
      { ...task, taskId: task.id, attemptId: null, number: null },
      from,
      sequence,
      null,
      'CANCELLED',
      null,
      reason,
    );
    if (from === 'BLOCKED') this.#countUnblocked(task.runId);
  }

  /** A blocked step whose dependencies are over; later says when it may start, if not now. */
  enqueueBlocked(task: RunTask, input: { value: Json } | null, later: Later | null = null): void {
    this.#statuses.set(task.id, 'ENQUEUED');
    this.#countUnblocked(task.runId);
    const sequence = task.sequence + 1;
    this.transition.enqueued.push(enqueuedFirst(task, { from: 'BLOCKED', sequence, input, later }));
  }

  /** A run follows its tasks; status null leaves it as it is. */
  addRun(run: LockedRun, status: RunStatus | null, reason: string | null): void {
    const ended = this.endedIn(run.id);
    const spawned = this.#spawned.get(run.id);
    this.transition.runs.push({
      run_id: run.id,
      closed_tasks: ended.length,
      spawned_tasks: spawned?.total,
      newly_blocked_tasks: spawned?.blocked,
      unblocked_tasks: this.#unblocked.get(run.id),
      to_status: status,
      from_status: status === null ? null : run.status,
      sequence: run.sequence + (status === null ? 0 : 1),
      failed_task_id: ended.find((task) => task.state === 'FAILED' && !task.optional)?.taskId,
      reason,
    });
  }

  endedIn(runId: string): readonly EndedTask[] {
    return this.#ended.get(runId) ?? [];
  }

  spawnedIn(runId: string): { total: number; blocked: number } {
    return this.#spawned.get(runId) ?? { total: 0, blocked: 0 };
  }

  statusOf(taskId: string): TaskStatus | undefined {
    return this.#statuses.get(taskId);
  }

  /** The stored state that a task gets, if it changes. */
  stateOf(taskId: string): 'OPEN' | 'COMPLETED' | 'FAILED' | 'CANCELLED' | undefined {
    const status = this.#statuses.get(taskId);
    return status === 'ENQUEUED' ? 'OPEN' : (status as 'COMPLETED' | 'FAILED' | 'CANCELLED' | undefined);
  }

  #completeLate(row: AttemptRow, report: Report | null, place: Place | undefined): void {
    if (!place) throw new Error(`The task ${row.taskId} has no place.`);
    if (place.in === 'LEASE') {
      this.transition.attemptEnds.push({ attempt_id: place.attemptId, status: 'CANCELLED' });
    }
    this.#end(
      row,
      place.in === 'LEASE' ? 'PROCESSING' : 'ENQUEUED',
      place.sequence,
      null,
      'COMPLETED',
      report,
      'LATE_RESULT',
    );
  }

  #end(
    task: Pick<AttemptRow, 'taskId' | 'runId' | 'step' | 'serialKey' | 'optional'> & {
      attemptId: string | null;
      number: number | null;
    },
    from: TaskStatus,
    sequence: number,
    error: ExecutionError | null,
    to: TaskEnd['to_status'],
    report: Report | null,
    reason: string | null = null,
  ): void {
    const output = to === 'COMPLETED' && report ? { value: report.output } : null;
    this.transition.taskEnds.push({
      task_id: task.taskId,
      run_id: task.runId,
      from_status: from,
      to_status: to,
      sequence: sequence + 1,
      attempt_id: task.attemptId,
      attempt_number: task.number,
      output,
      confidence: report?.confidence ?? null,
      error_code: error?.code ?? null,
      error_kind: error?.kind ?? null,
      error_message: error?.message ?? null,
      reason,
    });
    this.#follow(task, to, output, error);
  }

  /** What a task's end means for its run and its dependents. */
  #follow(
    task: Pick<AttemptRow, 'taskId' | 'runId' | 'step' | 'serialKey' | 'optional'>,
    to: TaskEnd['to_status'],
    output: { value: Json } | null,
    error: ExecutionError | null,
  ): void {
    this.#statuses.set(task.taskId, to);
    const end = { taskId: task.taskId, state: to, optional: task.optional };
    const ended = this.#ended.get(task.runId);
    if (ended) ended.push(end);
    else this.#ended.set(task.runId, [end]);
    this.freshEnds.push({
      taskId: task.taskId,
      runId: task.runId,
      step: task.step,
      state: to,
      output: output?.value ?? null,
      errorCode: error?.code ?? null,
    });
    if (task.serialKey !== null) this.endedSerialTasks.push(task.taskId);
  }

  #countUnblocked(runId: string): void {
    this.#unblocked.set(runId, (this.#unblocked.get(runId) ?? 0) + 1);
  }
}
