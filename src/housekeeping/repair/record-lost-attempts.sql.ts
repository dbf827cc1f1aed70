import type { Queryable } from '../../db/pool.ts';
import { nilUuid } from '../../domain/ids.ts';

const recordLostSql = `
insert into runplane.attempts (id, task_id, run_id, number, status, counted, worker_id, error_code, error_kind,
  error_message, started_at, finished_at)
select l.id, l.task_id, l.run_id, l.number, 'LOST', false, '${nilUuid}', $2, $3, $4, l.started_at, runplane.clock()
  from json_to_recordset($1::json) as l(id uuid, task_id uuid, run_id uuid, number int, started_at timestamptz)
on conflict do nothing`;

export interface LostAttempt {
  id: string;
  task_id: string;
  run_id: string;
  number: number;
  started_at: Date;
}

/** Records attempts whose lease is missing. Who had it is not known any more. */
export async function recordLostAttempts(
  tx: Queryable,
  attempts: readonly LostAttempt[],
  error: { code: string; kind: string; message: string | null },
): Promise<void> {
  if (attempts.length === 0) return;
  const values = [JSON.stringify(attempts), error.code, error.kind, error.message];
  await tx.query({ name: 'record-lost-attempts', text: recordLostSql, values });
}
