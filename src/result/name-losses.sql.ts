import type { Queryable } from '../db/pool.ts';
import type { EndedAttempt } from '../domain/work-observer.ts';
import type { AttemptRow } from './read-attempts.sql.ts';
import type { AttemptEnd } from './transition.ts';

/** What the log tells of work that was lost. */
export type Loss = Pick<
  EndedAttempt,
  'attemptId' | 'taskId' | 'runId' | 'correlationId' | 'agent' | 'step' | 'number' | 'status' | 'errorCode'
> & { deadLettered: boolean };

const namesSql = `
select r.correlation_id as "correlationId", g.name as agent
  from unnest($1::uuid[], $2::uuid[]) with ordinality given(run_id, agent_id, place)
 cross join lateral (select x.correlation_id from runplane.runs x where x.id = given.run_id offset 0) r
 cross join lateral (select x.name from runplane.agents x where x.id = given.agent_id offset 0) g
 order by given.place`;

/** Nobody did the work, for the time being or for good. */
const isLoss = ({ status, task_to }: AttemptEnd): boolean =>
  status === 'LOST' || status === 'TIMED_OUT' || task_to === 'FAILED';

/** Those of the ends by which work was lost; only their names are not known yet. */
export async function nameLosses(
  tx: Queryable,
  ends: readonly AttemptEnd[],
  attempts: ReadonlyMap<string, AttemptRow>,
): Promise<Loss[]> {
  const lost = ends.filter(isLoss).flatMap((end) => {
    const row = attempts.get(end.attempt_id);
    return row ? [{ end, row }] : [];
  });
  if (lost.length === 0) return [];
  const { rows: names } = await tx.query<Pick<Loss, 'correlationId' | 'agent'>>({
    name: 'name-losses',
    text: namesSql,
    values: [lost.map(({ row }) => row.runId), lost.map(({ row }) => row.agentId)],
  });
  return lost.flatMap(({ end, row: { attemptId, taskId, runId, step, number } }, i) => {
    const named = names[i];
    if (!named) return [];
    const { status, error_code, task_to } = end;
    const how = { status, errorCode: error_code ?? null, deadLettered: task_to === 'FAILED' };
    return [{ ...named, attemptId, taskId, runId, step, number, ...how }];
  });
}
