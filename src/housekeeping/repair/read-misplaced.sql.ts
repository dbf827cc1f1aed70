import type { Queryable } from '../../db/pool.ts';
import type { TaskState } from '../../domain/status.ts';
import { isBehindKey, isDelayed, isReady, placeCount } from './place-conditions.ts';

/** A task that is not open and has a place all the same, or is open and has none or several. */
export interface MisplacedTask {
  id: string;
  runId: string;
  step: string;
  agentId: string;
  serialKey: string | null;
  optional: boolean;
  state: TaskState;
  sequence: number;
  cancelRequested: boolean;
  /** Attempts that ended. */
  attempts: number;
  /** Until its time comes; 0 when that is over. */
  delaySeconds: number;
  ready: boolean;
  delayed: boolean;
  /** It has a row behind its serial key, first or not. */
  serial: boolean;
  /** It waits for another task of its serial key. */
  behindKey: boolean;
  lease: { attemptId: string; recorded: boolean } | null;
}

const misplacedSql = `
with now as materialized (select c.at, c.at - make_interval(secs => $2) as quiet_since from (select runplane.clock() as at) c)
select t.id, t.run_id as "runId", t.step, t.agent_id as "agentId", t.serial_key as "serialKey", t.optional, t.state, t.sequence,
       t.cancel_requested_at is not null as "cancelRequested",
       coalesce((select max(a.number) from runplane.attempts a where a.task_id = t.id), 0) as attempts,
       greatest(0, extract(epoch from t.available_at - n.at))::float8 as "delaySeconds",
       ${isReady} as ready, ${isDelayed} as delayed, ${isBehindKey} as "behindKey",
       exists (select from runplane.serial_tasks s where s.task_id = t.id) as serial,
       (select json_build_object('attemptId', l.attempt_id, 'recorded', exists (
          select from runplane.attempts a where a.id = l.attempt_id or a.task_id = l.task_id and a.number = l.number))
          from runplane.leases l where l.task_id = t.id) as lease
  from runplane.tasks t cross join now n
 where t.run_id = $1
   and case when t.state = 'OPEN'
         then ${placeCount} <> 1 and (t.id = any($3) or (t.available_at < n.quiet_since or t.available_at > n.at)
          and not exists (select from runplane.attempts a where a.task_id = t.id and a.finished_at >= n.quiet_since))
         else t.finished_at < n.quiet_since is not false
          and (${placeCount} > 0 or exists (select from runplane.serial_tasks s where s.task_id = t.id)) end
 order by t.id`;

/**
 * The misplaced tasks of a run, as one snapshot under its lock shows them: claims and the mover go on meanwhile. Those
 * whose place was just taken away are among them, however new they are.
 */
export async function readMisplaced(
  tx: Queryable,
  runId: string,
  thresholdSeconds: number,
  displaced: readonly string[],
): Promise<MisplacedTask[]> {
  const { rows } = await tx.query<MisplacedTask & Record<string, unknown>>({
    name: 'misplaced-tasks',
    text: misplacedSql,
    values: [runId, thresholdSeconds, displaced],
  });
  return rows;
}
