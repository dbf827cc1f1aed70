import { toPublicId } from '../domain/ids.ts';
import type { RecordedResult } from '../domain/work-observer.ts';
import type { Loss } from './name-losses.sql.ts';
import type { AttemptEnding, Endings } from './record-endings.ts';

/** What is told of results, once they are committed. One that comes again, after another one, is told then. */
export function resultsToTell(
  endings: readonly AttemptEnding[],
  { recorded, attempts }: Endings,
): RecordedResult[] {
  const byId = new Map(attempts.map((attempt) => [attempt.attemptId, attempt]));
  return endings.flatMap(({ attemptId, report, told }, i): RecordedResult[] => {
    const answer = recorded[i]?.answer;
    if (!told || answer === undefined || answer === 'AGAIN' || answer === 'NOTHING') return [];
    return [
      {
        attempt: byId.get(attemptId) ?? null,
        attemptId,
        by: report ? 'REPORT' : 'SWEEPER',
        answer,
        traceContext: told.traceContext,
        startedAt: told.at,
      },
    ];
  });
}

/** What names an attempt in the log. */
const namesOf = (attempt: Loss): object => ({
  correlationId: attempt.correlationId,
  attemptId: toPublicId('att', attempt.attemptId),
  taskId: toPublicId('task', attempt.taskId),
  runId: toPublicId('run', attempt.runId),
  agent: attempt.agent,
  step: attempt.step,
  number: attempt.number,
  status: attempt.status,
  errorCode: attempt.errorCode ?? undefined,
});

/** Somebody should know when work is not done, whatever the log leaves out. */
export function warnOfLoss(log: { warn(fields: object, message: string): void }, attempt: Loss): void {
  if (attempt.deadLettered) log.warn(namesOf(attempt), 'a task failed for good and left a dead letter');
  else if (attempt.status === 'LOST') log.warn(namesOf(attempt), 'an attempt lost its lease');
  else if (attempt.status === 'TIMED_OUT') log.warn(namesOf(attempt), 'an attempt ran too long');
}
