import type { Queryable } from '../db/pool.ts';
import { deadLetterScope } from '../domain/dead-letter-scope.ts';
import { newUuid } from '../domain/ids.ts';
import type { Json } from '../domain/json.ts';

const readSql = `
select t.id as "taskId", coalesce(t.labels, r.labels) as labels, coalesce(t.input, r.config) as input
  from runplane.tasks t join runplane.runs r on r.id = t.run_id where t.id = any($1)`;

// A task has at most one dead letter for ever: failing again after a replay is the same letter, grown.
const leaveSql = `
insert into runplane.dead_letters (id, task_id, run_id, agent_id, scope, scope_id, error_code, error_kind, error_message, failed_at)
select d.id, t.id, t.run_id, t.agent_id, d.scope, d."scopeId", t.error_code, t.error_kind, t.error_message, t.finished_at
  from json_to_recordset($1::json) as d(id uuid, "taskId" uuid, scope text, "scopeId" text)
  join runplane.tasks t on t.id = d."taskId"
on conflict (task_id) do update set fail_count = dead_letters.fail_count + 1, failed_at = excluded.failed_at, replayed_at = null,
  scope = excluded.scope, scope_id = excluded.scope_id, error_code = excluded.error_code, error_kind = excluded.error_kind,
  error_message = excluded.error_message`;

/** Keeps tasks that failed for good, for a replay. The tasks are FAILED already in this transaction. */
export async function leaveDeadLetters(tx: Queryable, taskIds: readonly string[]): Promise<void> {
  if (taskIds.length === 0) return;
  const { rows } = await tx.query<{ taskId: string; labels: Record<string, string>; input: Json }>({
    name: 'read-for-dead-letters',
    text: readSql,
    values: [taskIds],
  });
  const letters = rows.map(({ taskId, labels, input }) => ({
    id: newUuid(),
    taskId,
    ...deadLetterScope(labels, input),
  }));
  await tx.query({ name: 'leave-dead-letters', text: leaveSql, values: [JSON.stringify(letters)] });
}
