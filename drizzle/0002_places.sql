-- Storage settings of the hot tables. Half-full pages keep the one end-of-life update of tasks and runs on their own
-- page (HOT); the queue-like tables are vacuumed by count, since their size says nothing about their dead rows.
ALTER TABLE runplane.tasks SET (fillfactor = 50);
--> statement-breakpoint
ALTER TABLE runplane.runs SET (fillfactor = 50);
--> statement-breakpoint
ALTER TABLE runplane.leases SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
--> statement-breakpoint
ALTER TABLE runplane.customer_turns SET (fillfactor = 50);
--> statement-breakpoint
ALTER TABLE runplane.throttle_use SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
--> statement-breakpoint
ALTER TABLE runplane.ready_tasks SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
--> statement-breakpoint
ALTER TABLE runplane.delayed_tasks SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
--> statement-breakpoint
-- Fails a statement whose counts differ, and so undoes its transaction: a check that costs no look from outside.
CREATE FUNCTION runplane.must_be_equal(p_found bigint, p_expected bigint, p_what text) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF p_found <> p_expected THEN
    RAISE EXCEPTION '% % instead of %', p_found, p_what, p_expected;
  END IF;
END
$$;
--> statement-breakpoint
-- What stands for a serial key of an agent in advisory locks.
CREATE FUNCTION runplane.serial_key_hash(p_agent uuid, p_key text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT hashtextextended(p_agent::text || p_key, 1) $$;
--> statement-breakpoint
-- Gives each task its turn: customers are served in turns, each in its own order. A customer's next turn at an agent comes
-- after its last one and after the one that the queue is at: a backlog of 100,000 tasks delays nobody else's first one,
-- and nobody saves up turns by waiting.
CREATE FUNCTION runplane.take_turns(p_agents uuid[], p_priorities smallint[], p_customers text[]) RETURNS bigint[]
LANGUAGE sql VOLATILE AS $$
  WITH asked AS MATERIALIZED (
    SELECT a.n, a.agent_id, a.priority, a.customer,
           dense_rank() OVER (ORDER BY a.agent_id, a.priority, a.customer) AS lane,
           row_number() OVER (PARTITION BY a.agent_id, a.priority, a.customer ORDER BY a.n) AS k,
           count(*) OVER (PARTITION BY a.agent_id, a.priority, a.customer)::integer AS given
      FROM (SELECT u.n, u.agent_id, u.priority, coalesce(u.customer, '') AS customer
              FROM unnest(p_agents, p_priorities, p_customers) WITH ORDINALITY AS u(agent_id, priority, customer, n)) a),
  taken AS (
    INSERT INTO runplane.customer_turns AS c (agent_id, priority, customer, turn, given)
    SELECT a.agent_id, a.priority, a.customer, coalesce(l.turn, 0) + a.given, a.given
      FROM asked a JOIN runplane.agents g ON g.id = a.agent_id
      LEFT JOIN runplane.lane_turns l ON l.queue_id = g.queue_id AND l.priority = a.priority
     WHERE a.k = 1 ORDER BY a.lane
    ON CONFLICT (agent_id, priority, customer)
      DO UPDATE SET turn = greatest(c.turn, excluded.turn - excluded.given) + excluded.given, given = excluded.given
    RETURNING c.agent_id, c.priority, c.customer, c.turn)
  -- By number of the lane and not by a join, which could take one row after another.
  SELECT array_agg(x.turns[a.lane] - a.given + a.k ORDER BY a.n)
    FROM asked a CROSS JOIN (SELECT array_agg(t.turn ORDER BY t.agent_id, t.priority, t.customer) AS turns FROM taken t) x
$$;
--> statement-breakpoint
-- Makes tasks ready in the given order. The first task of a serial key that has had its place before keeps it.
CREATE FUNCTION runplane.make_ready(p_tasks uuid[], p_sequences integer[], p_attempts integer[]) RETURNS void
LANGUAGE sql VOLATILE AS $$
  WITH now AS MATERIALIZED (SELECT runplane.clock() AS at),
  given AS MATERIALIZED (
    SELECT p.n, t.id, t.run_id, t.agent_id, t.priority, r.customer, p.sequence, p.attempts, s.rank AS serial_rank,
           CASE WHEN s.rank IS NOT NULL THEN t.turn END AS kept
      FROM unnest(p_tasks, p_sequences, p_attempts) WITH ORDINALITY AS p(id, sequence, attempts, n)
      JOIN runplane.tasks t ON t.id = p.id
      JOIN runplane.runs r ON r.id = t.run_id
      -- Looked up and not joined: a plan made while few tasks had serial keys would go through all of them for each.
      LEFT JOIN LATERAL (SELECT x.rank FROM runplane.serial_tasks x WHERE x.task_id = t.id OFFSET 0) s ON true),
  turns AS MATERIALIZED (
    SELECT runplane.take_turns(array_agg(g.agent_id ORDER BY g.n), array_agg(g.priority ORDER BY g.n), array_agg(g.customer ORDER BY g.n)) AS turn
      FROM given g WHERE g.kept IS NULL),
  ordered AS MATERIALIZED (
    SELECT g.*, coalesce(g.kept, u.turn[g.k]) AS turn, coalesce(g.serial_rank, nextval('runplane.enqueue_order')) AS rank
      FROM (SELECT h.*, count(*) FILTER (WHERE h.kept IS NULL) OVER (ORDER BY h.n) AS k FROM given h ORDER BY h.n) g CROSS JOIN turns u),
  placed AS (
    UPDATE runplane.tasks t SET rank = o.rank, turn = o.turn FROM ordered o WHERE t.id = o.id)
  INSERT INTO runplane.ready_tasks (agent_id, priority_key, turn, rank, task_id, run_id, sequence, attempts, ready_at)
  SELECT o.agent_id, -o.priority, o.turn, o.rank, o.id, o.run_id, o.sequence, o.attempts, now.at FROM ordered o CROSS JOIN now
$$;
--> statement-breakpoint
-- Serialises all changes of the order behind these tasks' serial keys, in an order that cannot deadlock.
CREATE FUNCTION runplane.lock_serial_keys(p_tasks uuid[]) RETURNS void
LANGUAGE sql VOLATILE AS $$
  SELECT pg_advisory_xact_lock(k.hash) FROM (
    SELECT DISTINCT runplane.serial_key_hash(t.agent_id, t.serial_key) AS hash FROM runplane.tasks t
     WHERE t.id = ANY (p_tasks) AND t.serial_key IS NOT NULL ORDER BY 1) k
$$;
--> statement-breakpoint
-- Tasks become claimable, in the given order. One with a serial key takes its place behind its key, or keeps the one that
-- it has, and is ready only when it is the first of it. Tasks that are over leave their serial keys; the ones behind them
-- become ready. All at once: keys before turns, each locked in order, so that nobody waits in a circle.
CREATE FUNCTION runplane.enqueue_tasks(p_tasks uuid[], p_sequences integer[], p_attempts integer[], p_over uuid[] DEFAULT '{}') RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_tasks uuid[];
  v_sequences integer[];
  v_attempts integer[];
  v_next uuid[];
BEGIN
  -- Before turns are looked up: see advance_scans.
  PERFORM pg_current_xact_id();
  IF EXISTS (SELECT FROM runplane.tasks t WHERE t.id = ANY (p_tasks || p_over) AND t.serial_key IS NOT NULL) THEN
    PERFORM runplane.lock_serial_keys(p_tasks || p_over);
    WITH gone AS (
      DELETE FROM runplane.serial_tasks s WHERE s.task_id = ANY (p_over)
        RETURNING s.agent_id, s.serial_key, s.rank,
          NOT EXISTS (SELECT FROM runplane.serial_tasks b WHERE b.agent_id = s.agent_id AND b.serial_key = s.serial_key AND b.rank < s.rank) AS first)
    SELECT array_agg(n.task_id) INTO v_next FROM (SELECT DISTINCT g.agent_id, g.serial_key FROM gone g WHERE g.first) k
      CROSS JOIN LATERAL (
        SELECT s.task_id FROM runplane.serial_tasks s
         WHERE s.agent_id = k.agent_id AND s.serial_key = k.serial_key AND s.task_id <> ALL (p_over) ORDER BY s.rank LIMIT 1) n;
    INSERT INTO runplane.serial_tasks (agent_id, serial_key, rank, task_id, run_id, sequence, attempts, since)
    SELECT t.agent_id, t.serial_key, nextval('runplane.enqueue_order'), t.id, t.run_id, p.sequence, p.attempts, now.at
      FROM (SELECT runplane.clock() AS at OFFSET 0) now,
           unnest(p_tasks, p_sequences, p_attempts) WITH ORDINALITY AS p(id, sequence, attempts, n) JOIN runplane.tasks t ON t.id = p.id
     WHERE t.serial_key IS NOT NULL ORDER BY p.n
    ON CONFLICT (task_id) DO UPDATE SET sequence = excluded.sequence, attempts = excluded.attempts;
    SELECT array_agg(x.id ORDER BY x.n), array_agg(x.sequence ORDER BY x.n), array_agg(x.attempts ORDER BY x.n)
      INTO v_tasks, v_sequences, v_attempts
      FROM (
        SELECT row_number() OVER (ORDER BY p.n NULLS FIRST, h.rank) AS n, coalesce(h.task_id, p.id) AS id,
               coalesce(h.sequence, p.sequence) AS sequence, coalesce(h.attempts, p.attempts) AS attempts
          FROM (SELECT p.n, p.id, p.sequence, p.attempts, t.serial_key FROM unnest(p_tasks, p_sequences, p_attempts) WITH ORDINALITY AS p(id, sequence, attempts, n)
                  JOIN runplane.tasks t ON t.id = p.id) p
          FULL JOIN runplane.serial_heads(p_tasks || v_next) h ON h.task_id = p.id
         WHERE h.task_id IS NOT NULL OR p.serial_key IS NULL) x;
    IF v_tasks IS NOT NULL THEN
      PERFORM runplane.make_ready(v_tasks, v_sequences, v_attempts);
    END IF;
  ELSIF cardinality(p_tasks) > 0 THEN
    PERFORM runplane.make_ready(p_tasks, p_sequences, p_attempts);
  END IF;
END
$$;
--> statement-breakpoint
-- Of the given tasks, those that are first of their key and become ready. The keys are locked by the caller. A task that is
-- claimed together with the one before it, or that backs off after that, is first without being ready.
CREATE FUNCTION runplane.serial_heads(p_tasks uuid[]) RETURNS TABLE (task_id uuid, rank bigint, sequence integer, attempts integer)
LANGUAGE sql STABLE AS $$
  SELECT s.task_id, s.rank, s.sequence, s.attempts FROM runplane.serial_tasks s JOIN runplane.tasks t ON t.id = s.task_id
   WHERE s.task_id = ANY (p_tasks)
     -- OFFSET 0: looked up one by one, since a join could go through all leases.
     AND NOT EXISTS (SELECT FROM runplane.serial_tasks b WHERE b.agent_id = s.agent_id AND b.serial_key = s.serial_key AND b.rank < s.rank OFFSET 0)
     AND NOT EXISTS (SELECT FROM runplane.leases l WHERE l.task_id = s.task_id OFFSET 0)
     AND NOT EXISTS (SELECT FROM runplane.delayed_tasks d WHERE d.available_at = t.available_at AND d.task_id = s.task_id OFFSET 0)
$$;
--> statement-breakpoint
-- Makes due tasks ready: they take the place of now, not of when they were delayed.
CREATE FUNCTION runplane.move_due_tasks(p_limit integer) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_tasks uuid[];
  v_sequences integer[];
  v_attempts integer[];
  v_now timestamptz := runplane.clock();
BEGIN
  WITH due AS (
    DELETE FROM runplane.delayed_tasks d WHERE (d.available_at, d.task_id) IN (
      SELECT x.available_at, x.task_id FROM runplane.delayed_tasks x WHERE x.available_at <= v_now
       ORDER BY x.available_at, x.task_id LIMIT p_limit FOR UPDATE SKIP LOCKED)
    RETURNING d.*)
  SELECT array_agg(d.task_id ORDER BY d.available_at, d.task_id), array_agg(d.sequence ORDER BY d.available_at, d.task_id),
         array_agg(d.attempts ORDER BY d.available_at, d.task_id)
    INTO v_tasks, v_sequences, v_attempts FROM due d;
  IF v_tasks IS NULL THEN RETURN 0; END IF;
  PERFORM runplane.enqueue_tasks(v_tasks, v_sequences, v_attempts);
  RETURN cardinality(v_tasks);
END
$$;
