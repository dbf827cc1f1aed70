import type { Queryable } from '../../db/pool.ts';
import { isTerminal } from '../../domain/status.ts';
import type { LockedRun } from '../../result/lock-runs.sql.ts';
import { isMiscounted } from '../../result/step-counts.sql.ts';

export interface RunTally {
  open: number;
  blocked: number;
  total: number;
  /** Its steps are counted, and wrongly. */
  stepsMiscounted: boolean;
  /** Nothing in the run changed for the threshold. */
  quiet: boolean;
}

const tallySql = `
with now as materialized (select runplane.clock() - make_interval(secs => $2) as quiet_since)
select c.open, c.blocked, c.total, r.created_at < n.quiet_since and r.finished_at < n.quiet_since is not false
       and c.changed_at < n.quiet_since is not false as quiet, ${isMiscounted('r')} as "stepsMiscounted"
  from runplane.runs r cross join now n cross join lateral (
    select (count(*) filter (where t.state in ('OPEN', 'BLOCKED')))::int as open,
           (count(*) filter (where t.state = 'BLOCKED'))::int as blocked, count(*)::int as total,
           max(greatest(t.created_at, t.finished_at)) as changed_at
      from runplane.tasks t where t.run_id = r.id) c
 where r.id = $1`;

/** Counts the tasks of a locked run. */
export async function tallyRun(tx: Queryable, runId: string, thresholdSeconds: number): Promise<RunTally> {
  const { rows } = await tx.query<RunTally & Record<string, unknown>>({
    name: 'tally-run',
    text: tallySql,
    values: [runId, thresholdSeconds],
  });
  return rows[0] ?? { open: 0, blocked: 0, total: 0, stepsMiscounted: false, quiet: false };
}

const correctSql = `
with now as materialized (select runplane.clock() as at),
corrected as (
  update runplane.runs r set open_tasks = $2, blocked_tasks = $3, total_tasks = $4,
         status = case when $5 then 'RUNNING' else r.status end, sequence = r.sequence + $5::int,
         finished_at = case when $5 then null else r.finished_at end
   where r.id = $1 returning r.id, r.sequence)
insert into runplane.change_log (run_id, sequence, from_status, to_status, reason, at)
select c.id, c.sequence, $6::runplane.logged_status, 'RUNNING', 'HOUSEKEEPING', n.at from corrected c cross join now n where $5`;

/** Gives a locked run the right counters. One that ended although tasks of it are open goes on. */
export async function correctRun(tx: Queryable, run: LockedRun, tally: RunTally): Promise<void> {
  const goesOn = isTerminal(run.status) && tally.open > 0;
  await tx.query({
    name: 'correct-run',
    text: correctSql,
    values: [run.id, tally.open, tally.blocked, tally.total, goesOn, run.status],
  });
  run.openTasks = tally.open;
  run.blockedTasks = tally.blocked;
  run.totalTasks = tally.total;
  if (!goesOn) return;
  run.status = 'RUNNING';
  run.sequence += 1;
}
