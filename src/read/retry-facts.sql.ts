/**
 * What decides whether tasks can be retried. Runs in which results spawned tasks count their steps; those of others have
 * no members but the tasks of the job's steps.
 */
export const retryFactsSql = `
select t.id, r.status as "runStatus", t.error_code as "errorCode", t.runs_when as "when",
       coalesce(s.waits, false) as waits, s.broken as "brokenStep"
  from runplane.tasks t
  join runplane.runs r on r.id = t.run_id
 cross join lateral (
   select bool_or(d.open) as waits, min(d.step) filter (where d.broken) as broken from (
     select c.step, c.open > 0 as open, c.broken > 0 as broken from runplane.run_steps c
      where r.has_spawned and c.run_id = t.run_id and c.step = any(t.depends_on)
     union all
     select m.step, m.finished_at is null, m.state in ('FAILED', 'CANCELLED') and not m.optional from runplane.tasks m
      where not r.has_spawned and m.run_id = t.run_id and m.step = any(t.depends_on)) d) s
 where t.id = any($1)`;
