import type { Queryable } from '../db/pool.ts';
import type { EndedAttempt } from '../domain/work-observer.ts';

// Only for attempts that somebody wants to hear of. All is looked up by key, one by one, whatever the tables were when
// it was planned. Runs are locked meanwhile, so payloads are not read: their sizes are those that they are stored with.
const readSql = `
select a.id as "attemptId", a.number, a.status, a.counted, a.late, a.worker_id as "workerId", a.error_code as "errorCode",
       a.error_kind as "errorKind", a.started_at as "startedAt", a.finished_at as "finishedAt", t.id as "taskId", t.step, t.priority,
       t.max_attempts as "maxAttempts", t.state as "taskState", t.input_bytes as "inputBytes", t.output_bytes as "outputBytes",
       t.state = 'FAILED' and d.last as "deadLettered", r.id as "runId", r.event_id as "eventId", r.trace_context as "traceContext",
       r.correlation_id as "correlationId", j.name as job, g.agent, g.queue, u.usage
  from unnest($1::uuid[]) given(id)
 cross join lateral (select x.* from runplane.attempts x where x.id = given.id offset 0) a
 cross join lateral (
   select x.correlation_id, x.id, x.event_id, x.job_id, pg_column_size(x.config) as config_bytes, encode(x.trace_context, 'hex') as trace_context
     from runplane.tasks y join runplane.runs x on x.id = y.run_id where y.id = a.task_id offset 0) r
 cross join lateral (
   select x.*, coalesce(pg_column_size(x.input), r.config_bytes) as input_bytes, pg_column_size(x.output) as output_bytes
     from runplane.tasks x where x.id = a.task_id offset 0) t
 cross join lateral (select x.name from runplane.jobs x where x.id = r.job_id offset 0) j
 cross join lateral (
   select x.name as agent, q.name as queue from runplane.agents x join runplane.queues q on q.id = x.queue_id where x.id = t.agent_id offset 0) g
 cross join lateral (
   select not exists (select from runplane.attempts x where x.task_id = t.id and x.number > a.number offset 0) as last) d
  left join lateral (
   select json_build_object('models', coalesce(array_agg(distinct x.model) filter (where x.model is not null), '{}'),
            'providers', coalesce(array_agg(distinct x.provider) filter (where x.provider is not null), '{}'),
            'requests', sum(x.requests), 'inputTokens', sum(x.input_tokens), 'cacheReadTokens', sum(x.cache_read_tokens),
            'cacheWriteTokens', sum(coalesce(x.cache_write_tokens + x.cache_write_1h_tokens, x.cache_write_tokens, x.cache_write_1h_tokens)), 'outputTokens', sum(x.output_tokens),
            'reasoningTokens', sum(x.reasoning_tokens)) as usage
     from (select y.* from runplane.usage y where y.task_id = t.id and y.attempt_id = a.id offset 0) x having count(*) > 0) u on true`;

/** Attempts that are over, as they are now; one that runs is left out. */
export async function readEndedAttempts(
  tx: Queryable,
  attemptIds: readonly string[],
): Promise<EndedAttempt[]> {
  if (attemptIds.length === 0) return [];
  const { rows } = await tx.query<EndedAttempt & Record<string, unknown>>({
    name: 'read-ended-attempts',
    text: readSql,
    values: [attemptIds],
  });
  return rows;
}
