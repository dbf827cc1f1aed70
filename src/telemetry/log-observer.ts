import { toPublicId } from '../domain/ids.ts';
import { type TracedWork, traceparentOf } from '../domain/trace-context.ts';
import type {
  AdmittedWork,
  ClaimedWork,
  DispatchedWork,
  EndedAttempt,
  LeasedTask,
  RecordedResult,
  WorkObserver,
} from '../domain/work-observer.ts';

interface DebugLog {
  debug(fields: object, message: string): void;
}

const namesOf = (task: Omit<LeasedTask, 'agentId' | keyof TracedWork> & TracedWork): object => ({
  correlationId: task.correlationId,
  runId: toPublicId('run', task.runId),
  taskId: toPublicId('task', task.taskId),
  attemptId: toPublicId('att', task.attemptId),
  agent: task.agent,
  step: task.step,
  number: task.number,
});

/** Each step of the work as a line of the log, with its correlation id. */
export class LogObserver implements WorkObserver {
  readonly #log: DebugLog;

  constructor(log: DebugLog) {
    this.#log = log;
  }

  admitted({ kind, of, id, correlationId, runIds, refusals, replayed, problem }: AdmittedWork): void {
    const event = kind === 'EVENT';
    const fields = {
      correlationId,
      [{ LAUNCH: 'job', EVENT: 'topic', RERUN: 'parentRunId' }[kind]]: of,
      eventId: event && id !== null ? toPublicId('evt', id) : undefined,
      runIds: runIds.map((run) => toPublicId('run', run)),
      refusals: event ? refusals : undefined,
      replayed,
      problem: problem ?? undefined,
    };
    this.#log.debug({ stage: 'intake', ...fields }, problem === null ? 'taken in' : 'refused');
  }

  claimed({ tasks, workerId }: ClaimedWork): void {
    const worker = toPublicId('wrk', workerId);
    for (const task of tasks)
      this.#log.debug({ stage: 'claim', ...namesOf(task), workerId: worker }, 'claimed');
  }

  dispatched({ task, to }: DispatchedWork): void {
    this.#log.debug({ stage: 'dispatch', ...namesOf(task), to }, 'handed over');
  }

  recorded(attempts: readonly EndedAttempt[], results: readonly RecordedResult[]): void {
    for (const attempt of attempts) {
      const { status, taskState, deadLettered, errorCode } = attempt;
      const fields = { status, taskState, deadLettered, errorCode: errorCode ?? undefined };
      this.#log.debug({ stage: 'attempt', ...namesOf(attempt), ...fields }, 'ended');
    }
    for (const { attempt, by, answer } of results)
      if (attempt) this.#log.debug({ stage: 'result', ...namesOf(attempt), by, answer }, 'recorded');
  }

  traceparent(work: TracedWork): string {
    return traceparentOf(work);
  }
}
