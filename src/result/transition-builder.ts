import type { ExecutionError } from '../domain/execution-error.ts';
import type { Json } from '../domain/json.ts';
import type { RunStatus, TaskStatus } from '../domain/status.ts';
import type { Decision } from './decide-result.ts';
import type { Report } from './parse-result.ts';
import type { AttemptRow, LockedRun } from './read-attempts.sql.ts';
import type { RunTask } from './read-run-tasks.sql.ts';
import type { FreshEnd } from './render-inputs.ts';
import type { Place } from './take-places.sql.ts';
import type { TaskEnd, Transition } from './transition.ts';

interface EndedTask {
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
  readonly #ended = new Map<string, EndedTask[]>();
  readonly #statuses = new Map<string, TaskStatus>();
  readonly #unblocked = new Map<string, number>();

  addDecision(row: AttemptRow, report: Report | null, decision: Decision, place: Place | undefined): void {
    if (decision.answer !== 'APPLIED') return;
    if (decision.late) {
      this.#completeLate(row, report, place);
      return;
    }
    this.transition.attemptEnds.push({
      attempt_id: row.attemptId,
      status: decision.attempt,
      counted: decision.counted,
      sanitized: report?.sanitized ?? false,
      digest: report?.digest.toString('hex') ?? null,
      error_code: decision.error?.code ?? null,
      error_kind: decision.error?.kind ?? null,
      error_message: decision.error?.message ?? null,
      error_retryable: decision.error ? decision.error.kind !== 'PERMANENT' : null,
      confidence: report?.confidence ?? null,
      trace_id: report?.traceId ?? null,
      external_run_id: report?.externalRunId ?? null,
    });
    const { task } = decision;
    if (task.to !== 'ENQUEUED') {
      this.#end(row, 'PROCESSING', row.sequence, task.to === 'FAILED' ? task.error : null, task.to, report);
      if (task.to === 'FAILED') this.deadLetters.push(row.taskId);
      return;
    }
    this.#statuses.set(row.taskId, 'ENQUEUED');
    this.transition.enqueued.push({
      task_id: row.taskId,
      run_id: row.runId,
      agent_id: row.agentId,
      serial_key: row.serialKey,
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

  /** A blocked step whose dependencies are over. */
  enqueueBlocked(task: RunTask, input: { value: Json } | null): void {
    this.#statuses.set(task.id, 'ENQUEUED');
    this.#countUnblocked(task.runId);
    this.transition.enqueued.push({
      task_id: task.id,
      run_id: task.runId,
      agent_id: task.agentId,
      serial_key: task.serialKey,
      from_status: 'BLOCKED',
      sequence: task.sequence + 1,
      attempts: 0,
      attempt_id: null,
      attempt_number: null,
      delay_seconds: 0,
      delay_reason: 'NOT_BEFORE',
      input,
      error_code: null,
      reason: null,
    });
  }

  /** A run follows its tasks; status null leaves it as it is. */
  addRun(run: LockedRun, status: RunStatus | null): void {
    const ended = this.endedIn(run.id);
    this.transition.runs.push({
      run_id: run.id,
      closed_tasks: ended.length,
      unblocked_tasks: this.#unblocked.get(run.id) ?? 0,
      to_status: status,
      from_status: status === null ? null : (run.status as RunStatus),
      sequence: run.sequence + (status === null ? 0 : 1),
      failed_task_id: ended.find((task) => task.state === 'FAILED' && !task.optional)?.taskId ?? null,
    });
  }

  endedIn(runId: string): readonly EndedTask[] {
    return this.#ended.get(runId) ?? [];
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
      this.transition.attemptEnds.push({
        attempt_id: place.attemptId,
        status: 'CANCELLED',
        counted: false,
        sanitized: false,
        digest: null,
        error_code: null,
        error_kind: null,
        error_message: null,
        error_retryable: null,
        confidence: null,
        trace_id: null,
        external_run_id: null,
      });
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
      error,
      reason,
    });
    this.#statuses.set(task.taskId, to);
    this.#ended.set(task.runId, [
      ...this.endedIn(task.runId),
      { taskId: task.taskId, state: to, optional: task.optional },
    ]);
    this.freshEnds.push({
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
