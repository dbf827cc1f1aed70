import jsone from 'json-e';
import { toPublicId } from './ids.ts';
import type { Json, JsonObject } from './json.ts';

export type Rendered = { ok: true; value: Json } | { ok: false; message: string };

/** Renders a json-e template. A template that cannot be rendered is a value here: templates are users' input. */
export function renderTemplate(template: Json, context: Record<string, unknown>): Rendered {
  try {
    const value: unknown = jsone(template as Parameters<typeof jsone>[0], context);
    // A template that yields nothing ($if without else) renders to undefined.
    return { ok: true, value: value === undefined ? null : (value as Json) };
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : String(error) };
  }
}

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
