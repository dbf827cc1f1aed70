import { toPublicId } from '../domain/ids.ts';
import type { AdmittedWork, BookedUsage, EndedAttempt, LeasedTask } from '../domain/work-observer.ts';
import type { SpanOptions } from './types.ts';

type Attributes = SpanOptions['attributes'];

const sum = (...counts: (number | null)[]): number | null =>
  counts.some((count) => count !== null)
    ? counts.reduce<number>((total, count) => total + (count ?? 0), 0)
    : null;

/** A name that all answers share; several are told as a list. */
const oneOf = (names: readonly string[]): string | null => (names.length === 1 ? (names[0] ?? null) : null);

/**
 * Token use as the conventions for generative AI name it: there, what a cache gave or took counts as input as well, and
 * reasoning as output. The names are not stable yet, so they stand here and nowhere else.
 */
export const usageAttributes = (usage: BookedUsage | null): Attributes =>
  usage === null
    ? {}
    : {
        'gen_ai.usage.input_tokens': sum(usage.inputTokens, usage.cacheReadTokens, usage.cacheWriteTokens),
        'gen_ai.usage.cache_read.input_tokens': usage.cacheReadTokens,
        'gen_ai.usage.cache_creation.input_tokens': usage.cacheWriteTokens,
        'gen_ai.usage.output_tokens': sum(usage.outputTokens, usage.reasoningTokens),
        'gen_ai.usage.reasoning.output_tokens': usage.reasoningTokens,
        'gen_ai.response.model': oneOf(usage.models),
        'gen_ai.provider.name': oneOf(usage.providers),
        'runplane.usage.models': usage.models.length > 1 ? usage.models : null,
        'runplane.usage.requests': usage.requests,
      };

/** What came in. */
export const intakeAttributes = (work: AdmittedWork): Attributes => ({
  'runplane.intake.kind': work.kind,
  'runplane.job': work.kind === 'LAUNCH' ? work.of : null,
  'runplane.topic': work.kind === 'EVENT' ? work.of : null,
  'runplane.parent_run.id': work.kind === 'RERUN' ? work.of : null,
  'runplane.correlation_id': work.correlationId,
  'runplane.event.id': work.kind === 'EVENT' && work.id !== null ? toPublicId('evt', work.id) : null,
  'runplane.run.id': work.runIds.length === 1 ? toPublicId('run', work.runIds[0] ?? '') : null,
  'runplane.intake.runs': work.runIds.length,
  'runplane.intake.refusals': work.refusals,
  'runplane.intake.replayed': work.replayed,
  'runplane.payload.size': Buffer.byteLength(JSON.stringify(work.payload ?? null)),
  'error.type': work.problem,
});

/** Whose attempt it is. */
export const taskAttributes = (
  task: Pick<LeasedTask, 'attemptId' | 'taskId' | 'runId' | 'correlationId' | 'agent' | 'step' | 'number'>,
): Attributes => ({
  'runplane.correlation_id': task.correlationId,
  'runplane.run.id': toPublicId('run', task.runId),
  'runplane.task.id': toPublicId('task', task.taskId),
  'runplane.attempt.id': toPublicId('att', task.attemptId),
  'runplane.attempt.number': task.number,
  'runplane.agent': task.agent,
  'runplane.step': task.step,
});

/** How an attempt ended, and what becomes of its task. */
export const endAttributes = (attempt: EndedAttempt): Attributes => ({
  ...taskAttributes(attempt),
  'runplane.worker.id': toPublicId('wrk', attempt.workerId),
  'runplane.job': attempt.job,
  'runplane.queue': attempt.queue,
  'runplane.priority': attempt.priority,
  'runplane.attempt.status': attempt.status,
  'runplane.attempt.counted': attempt.counted,
  'runplane.attempt.max': attempt.maxAttempts,
  'runplane.task.status': attempt.taskState === 'OPEN' ? 'ENQUEUED' : attempt.taskState,
  'runplane.task.retried': attempt.taskState === 'OPEN',
  'runplane.task.dead_lettered': attempt.deadLettered,
  'runplane.input.size': attempt.inputBytes,
  'runplane.output.size': attempt.outputBytes,
  'error.type': attempt.errorCode,
  'runplane.error.kind': attempt.errorKind,
});
