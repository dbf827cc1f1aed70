import type { Json } from '../domain/json.ts';
import { InvalidInputError } from '../domain/problems.ts';
import { parsePriority } from '../domain/task-fields.ts';
import { parseName } from '../domain/text.ts';
import { topicFault } from '../domain/topic.ts';
import { asJson } from './audit.ts';
import { parseEach, parseTemplate } from './parse-fields.ts';
import { readRow } from './rows.ts';
import type { ObjectKind } from './save.ts';
import type { SaveRouteInput } from './types.ts';

export interface RouteSpec {
  topic: string;
  job: string;
  config: Json;
  customer: Json;
  labels: Json;
  serialKey: Json;
  estimatedTokens: Json;
  priority: number;
  enabled: boolean;
}

/** What the templates of a route see. */
const seen = ['event', 'payload'];

const routeSql = `select r.topic, j.name as job, r.config, r.customer, r.labels, r.serial_key as "serialKey",
          r.estimated_tokens as "estimatedTokens", r.priority, r.enabled
     from runplane.routes r join runplane.jobs j on j.id = r.job_id where r.id = $1`;

export const routeKind: ObjectKind<SaveRouteInput, RouteSpec> = {
  noun: 'route',
  parse: (input) =>
    parseEach<RouteSpec>({
      topic: () => parsePattern(input.topic),
      job: () => parseName(input.job, 'job'),
      config: () => parseTemplate(input.config, 'config', seen),
      customer: () => parseTemplate(input.customer, 'customer', seen),
      labels: () => parseTemplate(input.labels, 'labels', seen),
      serialKey: () => parseTemplate(input.serialKey, 'serialKey', seen),
      estimatedTokens: () => parseTemplate(input.estimatedTokens, 'estimatedTokens', seen),
      priority: () => parsePriority(input.priority ?? 0, 'priority'),
      enabled: () => input.enabled ?? true,
    }),
  references: ({ job }) => [{ noun: 'job', name: job, field: 'job' }],
  read: (tx, id) => readRow(tx, routeSql, id),
  columns: (spec, idOf) => ({
    topic: spec.topic,
    job_id: idOf('job', spec.job),
    config: asJson(spec.config),
    customer: asJson(spec.customer),
    labels: asJson(spec.labels),
    serial_key: asJson(spec.serialKey),
    estimated_tokens: asJson(spec.estimatedTokens),
    priority: spec.priority,
    enabled: spec.enabled,
  }),
};

function parsePattern(topic: string): string {
  const pattern = parseName(topic, 'topic');
  const fault = topicFault(pattern, true);
  if (fault) throw new InvalidInputError('topic', `topic ${fault}.`);
  return pattern;
}
