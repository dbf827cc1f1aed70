import jsone from 'json-e';
import { toPublicId } from './ids.ts';
import { checkJson, type Json, type JsonObject } from './json.ts';
import { limits } from './limits.ts';
import { BudgetSpent, timeBound } from './time-bound.ts';

export type Rendered = { ok: true; value: Json } | { ok: false; message: string };

/**
 * Renders the json-e template of a field; throws BudgetSpent. A template that cannot be rendered is a value here: templates
 * are users' input.
 */
export function renderTemplate(template: Json, context: Record<string, unknown>, field: string): Rendered {
  try {
    const value = timeBound(
      limits.templateMs,
      () => jsone(template as Parameters<typeof jsone>[0], { ...context, range }) as unknown,
    );
    // A template that yields nothing ($if without else) renders to undefined. What it yields is no better than any
    // other input: split('😀', '') gives half characters, 10 ** 1000 is not finite.
    const { value: checked } = checkJson(value ?? null, 'what it gives', {
      maxBytes: limits.resultJsonBytes,
    });
    return { ok: true, value: checked };
  } catch (error) {
    if (error instanceof BudgetSpent) throw error;
    return { ok: false, message: reasonOf(error, field) };
  }
}

function reasonOf(error: unknown, field: string): string {
  if (!(error instanceof Error)) return String(error);
  // The one message of json-e that quotes a value.
  const reason = error.message.replace(/^String: '.*' isn't a/s, 'what is to be a time from now is no');
  // The keys that lead there, without those of operators.
  const { location } = error as { location?: unknown };
  const place = Array.isArray(location) ? location.join('').slice(0, 200) : '';
  return place === '' ? reason : `${reason} (at ${field}${place})`;
}

/** In place of json-e's own, which allocates whatever it is asked for. */
function range(start: unknown, stop: unknown, step: unknown = 1): number[] {
  if (!Number.isInteger(start) || !Number.isInteger(stop) || !Number.isInteger(step) || step === 0)
    throw new Error('range() takes integers, and a step that is not 0');
  const [from, to, by] = [start as number, stop as number, step as number];
  const length = Math.max(0, Math.ceil((to - from) / by));
  if (length > limits.templateRange)
    throw new Error(`range() gives ${length} entries; at most ${limits.templateRange} are allowed`);
  return Array.from({ length }, (_, i) => from + i * by);
}

export interface TemplateEvent {
  id: string;
  topic: string;
  correlationId: string;
  idempotencyKey: string | null;
  customer: string | null;
  labels: Record<string, string>;
  payload: Json;
}

/** What templates see of an event. */
export const eventContext = (event: TemplateEvent): JsonObject => ({
  id: toPublicId('evt', event.id),
  topic: event.topic,
  correlationId: event.correlationId,
  idempotencyKey: event.idempotencyKey,
  customer: event.customer,
  labels: event.labels,
  payload: event.payload,
});

/** What templates see of a run. */
export const runContext = (run: {
  id: string;
  job: string;
  correlationId: string;
  customer: string | null;
  labels: Record<string, string>;
  priority: number;
}): JsonObject => ({
  id: toPublicId('run', run.id),
  job: run.job,
  correlationId: run.correlationId,
  customer: run.customer,
  labels: run.labels,
  priority: run.priority,
});
