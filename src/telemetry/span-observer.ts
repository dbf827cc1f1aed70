import { toPublicId } from '../domain/ids.ts';
import {
  formatTraceparent,
  ownTraceId,
  spanIdOf,
  type TraceContext,
  type TracedWork,
  unpackTraceContext,
} from '../domain/trace-context.ts';
import {
  type AdmittedWork,
  type ClaimedWork,
  type DispatchedWork,
  type EndedAttempt,
  preciseNow,
  type RecordedResult,
  type WorkObserver,
} from '../domain/work-observer.ts';
import { endAttributes, intakeAttributes, taskAttributes, usageAttributes } from './attributes.ts';
import type { QueueNames } from './queue-names.ts';
import type { SpanOptions, SpanWriter } from './types.ts';

/** As the API of OpenTelemetry numbers them. */
const kinds = { internal: 0, server: 1, producer: 3, consumer: 4 } as const;
const errorStatus = 2;

const noTrace = '0'.repeat(32);
const noContext = { eventId: null, traceContext: null };

/**
 * Work as spans. The ids of what others refer to follow from the ids of events, runs and attempts, and times of attempts
 * are the database's: whichever process records the end of an attempt writes the one span that it has.
 *
 *     intake ─┬─ claim
 *             └─ attempt ─┬─ dispatch
 *                         └─ result
 */
export class SpanObserver implements WorkObserver {
  readonly #writer: SpanWriter;
  readonly #queues: QueueNames;
  readonly #onError: (error: unknown) => void;
  readonly #writing = new Set<Promise<void>>();

  constructor(writer: SpanWriter, queues: QueueNames, onError: (error: unknown) => void) {
    this.#writer = writer;
    this.#queues = queues;
    this.#onError = onError;
  }

  admitted(work: AdmittedWork): void {
    const { id, replayed, isNew, traceContext: given, problem } = work;
    // What was there has its span already; whoever asked again has another one, unless the run goes on in his trace.
    const isOwn = id !== null && !replayed && (isNew || given !== null);
    const traceId =
      given?.traceId ?? (id === null ? randomTraceId() : ownTraceId({ eventId: id, runId: id }));
    const parent = given ?? (id === null || isOwn ? null : this.#intakeOf({ ...noContext, runId: id }));
    const span = {
      name: 'intake',
      kind: work.kind === 'EVENT' ? kinds.consumer : kinds.server,
      traceId,
      spanId: isOwn ? spanIdOf(id) : null,
      parent,
      startedAt: work.startedAt,
      status: problem === null ? null : { code: errorStatus, message: problem },
    } as const;
    if (!this.#writer.isSampled(span.traceId, span.parent)) return;
    this.#write({ ...span, attributes: intakeAttributes(work) });
  }

  claimed({ tasks, workerId, startedAt }: ClaimedWork): void {
    const endedAt = preciseNow();
    const traced = tasks.flatMap((task) => {
      const parent = this.#intakeOf(task);
      return parent.sampled ? [{ task, parent }] : [];
    });
    if (traced.length === 0) return;
    // Nobody waits for it: the name of the queue is looked up beside the work.
    const writing = this.#queues
      .of(traced.map(({ task }) => task.agentId))
      .then((queues) => {
        for (const { task, parent } of traced) {
          const attributes = {
            ...taskAttributes(task),
            'runplane.queue': queues.get(task.agentId) ?? null,
            'runplane.worker.id': toPublicId('wrk', workerId),
            'runplane.claim.tasks': tasks.length,
          };
          this.#write({ name: 'claim', parent, startedAt, endedAt, attributes });
        }
      })
      .catch(this.#onError)
      .finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
  }

  dispatched({ task, to, workerId, claimedAt }: DispatchedWork): void {
    const parent = this.#attemptOf(task);
    if (!parent.sampled) return;
    const attributes = {
      ...taskAttributes(task),
      'runplane.dispatch.to': to,
      'runplane.worker.id': toPublicId('wrk', workerId),
    };
    this.#write({ name: 'dispatch', kind: kinds.producer, parent, startedAt: claimedAt, attributes });
  }

  recorded(attempts: readonly EndedAttempt[], results: readonly RecordedResult[]): void {
    for (const attempt of attempts) this.#writeAttempt(attempt);
    for (const result of results) this.#writeResult(result);
  }

  traceparent(work: TracedWork): string {
    return formatTraceparent(this.#attemptOf(work));
  }

  /** Settles when everything is written that was told. */
  async settled(): Promise<void> {
    await Promise.all(this.#writing);
  }

  #writeAttempt(attempt: EndedAttempt): void {
    const parent = this.#intakeOf(attempt);
    if (!parent.sampled) return;
    this.#write({
      name: 'attempt',
      kind: kinds.consumer,
      spanId: spanIdOf(attempt.attemptId),
      parent,
      startedAt: attempt.startedAt,
      endedAt: attempt.finishedAt,
      attributes: { ...endAttributes(attempt), ...usageAttributes(attempt.usage) },
      status: statusOf(attempt),
    });
  }

  #writeResult({ attempt, by, answer, traceContext: reporter, startedAt }: RecordedResult): void {
    if (!attempt) return;
    const own = this.#attemptOf(attempt);
    if (!own.sampled) return;
    // Below the span of the worker that reports, where it is in the same trace, as it should be.
    const isBelow = reporter?.traceId === own.traceId;
    const parent = isBelow && reporter ? { ...reporter, sampled: true } : own;
    const attributes = {
      ...endAttributes(attempt),
      'runplane.result.answer': answer,
      'runplane.result.by': by,
      // Of an attempt that had ended, the span is written already: what it cost since is told here.
      ...(attempt.late || answer === 'SUPERSEDED' ? usageAttributes(attempt.usage) : {}),
    };
    this.#write({
      name: 'result',
      parent,
      links: reporter && !isBelow ? [reporter] : [],
      startedAt,
      attributes,
    });
  }

  /** The span that a run came in by, in its trace. */
  #intakeOf(work: Omit<TracedWork, 'attemptId'>): TraceContext {
    const given = unpackTraceContext(work.traceContext);
    const traceId = given?.traceId ?? ownTraceId(work);
    return {
      traceId,
      spanId: spanIdOf(work.eventId ?? work.runId),
      sampled: this.#writer.isSampled(traceId, given),
    };
  }

  #attemptOf(work: TracedWork): TraceContext {
    return { ...this.#intakeOf(work), spanId: spanIdOf(work.attemptId) };
  }

  #write(span: Pick<SpanOptions, 'name' | 'startedAt' | 'attributes'> & Partial<SpanOptions>): void {
    const { parent = null } = span;
    this.#writer.write({
      kind: kinds.internal,
      traceId: parent?.traceId ?? noTrace,
      spanId: null,
      links: [],
      endedAt: preciseNow(),
      status: null,
      ...span,
      parent,
    });
  }
}

const hex = '0123456789abcdef';
const randomTraceId = (): string =>
  Array.from({ length: 32 }, () => hex[Math.floor(Math.random() * 16)]).join('');

/** An attempt that did what it was to do, was handed back or was cancelled is no error. */
function statusOf({ status, deadLettered }: EndedAttempt): SpanOptions['status'] {
  if (status !== 'FAILED' && status !== 'LOST' && status !== 'TIMED_OUT' && !deadLettered) return null;
  return { code: errorStatus, message: deadLettered ? `${status}, DEAD_LETTERED` : status };
}
