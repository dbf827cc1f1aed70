-- The one clock: no SQL asks now() or clock_timestamp() itself, so that tests can replace the time.
-- Cut to milliseconds, the precision of every stored time, so that a stored time is never after its clock.
CREATE SCHEMA IF NOT EXISTS runplane;
--> statement-breakpoint
CREATE FUNCTION runplane.clock() RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT date_trunc('milliseconds', clock_timestamp())
$$;
--> statement-breakpoint
-- The order in which tasks became ready: places inside a queue.
CREATE SEQUENCE runplane.enqueue_order AS bigint;
--> statement-breakpoint
-- The order of claims: drawn under the agent's lock, so it ascends per agent.
CREATE SEQUENCE runplane.claim_order AS bigint;
