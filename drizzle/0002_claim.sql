-- Storage settings of the hot tables. Half-full pages keep the one end-of-life update of tasks and runs on their own
-- page (HOT); the queue-like tables are vacuumed by count, since their size says nothing about their dead rows.
ALTER TABLE runplane.tasks SET (fillfactor = 50);
--> statement-breakpoint
ALTER TABLE runplane.runs SET (fillfactor = 50);
--> statement-breakpoint
ALTER TABLE runplane.leases SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
--> statement-breakpoint
ALTER TABLE runplane.ready_tasks SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
--> statement-breakpoint
ALTER TABLE runplane.delayed_tasks SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
--> statement-breakpoint
-- What a worker gets for a lease: one definition for first and repeated claims.
CREATE VIEW runplane.assignments AS
SELECT l.attempt_id, l.task_id, l.run_id, l.agent_id, l.worker_id, l.claim_key, l.claim_seq, l.number, l.lease_seconds,
       l.started_at, l.expires_at, l.timeout_at, t.step, coalesce(t.input, r.config) AS input, t.serial_key,
       r.labels, r.customer, r.correlation_id, r.event_id, p.checkpoint, a.name AS agent, a.handler, a.timeout_seconds
  FROM runplane.leases l
  JOIN runplane.agents a ON a.id = l.agent_id
  JOIN runplane.tasks t ON t.id = l.task_id
  JOIN runplane.runs r ON r.id = l.run_id
  LEFT JOIN runplane.task_progress p ON p.task_id = l.task_id;
--> statement-breakpoint
-- Claims up to cardinality(p_attempt_ids) tasks of the given agents, best first, never above a limit.
--
-- READ COMMITTED gives each statement its own snapshot, taken before it waits for any lock. Counting and claiming in
-- one statement would therefore count leases as they were before the lock. So: lock in a statement of its own, count
-- in the next, claim in the one after. Each statement of this function gets a new snapshot because it is VOLATILE.
--
-- Locks are taken in the order agents, throttles, runs, ready rows. Claimers skip what another claimer holds and take
-- other agents instead; only when nothing else is left do they wait for it.
CREATE FUNCTION runplane.claim_tasks(
  p_agents uuid[], p_attempt_ids uuid[], p_worker uuid, p_claim_key text, p_lease_seconds integer
) RETURNS SETOF runplane.assignments
LANGUAGE plpgsql VOLATILE
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_now timestamptz;
  v_limit integer := cardinality(p_attempt_ids);
  v_agents uuid[];
  v_throttles uuid[];
  v_locked uuid[];
  v_places tid[];
  v_tasks uuid[];
  v_runs uuid[];
  v_startable uuid[];
  v_attempts uuid[];
BEGIN
  IF p_claim_key IS NOT NULL THEN
    PERFORM pg_advisory_xact_lock(hashtextextended(p_worker::text || p_claim_key, 0));
    RETURN QUERY SELECT a.* FROM runplane.assignments a
      WHERE a.worker_id = p_worker AND a.claim_key = p_claim_key ORDER BY a.claim_seq;
    IF FOUND THEN RETURN; END IF;
  END IF;

  -- Agents that have work and may run it.
  SELECT array_agg(a.id ORDER BY a.id) INTO v_agents
    FROM runplane.agents a JOIN runplane.queues q ON q.id = a.queue_id
   WHERE a.id = ANY (p_agents) AND NOT a.paused AND NOT q.paused
     AND EXISTS (SELECT FROM runplane.ready_tasks r WHERE r.agent_id = a.id);
  IF v_agents IS NULL THEN RETURN; END IF;

  SELECT array_agg(x.id) INTO v_locked FROM (
    SELECT a.id FROM runplane.agents a WHERE a.id = ANY (v_agents) ORDER BY a.id FOR NO KEY UPDATE SKIP LOCKED) x;
  IF v_locked IS NULL THEN
    SELECT array_agg(x.id) INTO v_locked FROM (
      SELECT a.id FROM runplane.agents a WHERE a.id = ANY (v_agents) ORDER BY a.id FOR NO KEY UPDATE) x;
  END IF;
  v_agents := v_locked;

  -- All throttles of an agent or none: an agent one of whose throttles is being claimed elsewhere is left out.
  SELECT array_agg(DISTINCT x.throttle_id) INTO v_throttles FROM runplane.agent_throttles x WHERE x.agent_id = ANY (v_agents);
  IF v_throttles IS NOT NULL THEN
    SELECT array_agg(x.id) INTO v_locked FROM (
      SELECT t.id FROM runplane.throttles t WHERE t.id = ANY (v_throttles) ORDER BY t.id FOR NO KEY UPDATE SKIP LOCKED) x;
    SELECT array_agg(a) INTO v_startable FROM unnest(v_agents) a
     WHERE NOT EXISTS (SELECT FROM runplane.agent_throttles x WHERE x.agent_id = a AND x.throttle_id <> ALL (coalesce(v_locked, '{}')));
    IF v_startable IS NULL THEN
      PERFORM FROM runplane.throttles t WHERE t.id = ANY (v_throttles) ORDER BY t.id FOR NO KEY UPDATE;
    ELSE
      v_agents := v_startable;
    END IF;
  END IF;

  -- Leases begin when the locks are there, not when they were asked for.
  v_now := runplane.clock();

  -- Room is what the limits, as they are now, leave beside the live leases. Then: the heads of all agents with room,
  -- the best rows of the best heads, cut where agents share a throttle. A full agent is out before any LIMIT.
  WITH throttle_room AS MATERIALIZED (
    SELECT t.id, t.not_before <= v_now IS NOT FALSE AS open,
           CASE WHEN t.max_concurrent_tasks IS NOT NULL THEN greatest(0, t.max_concurrent_tasks - (
             SELECT count(*) FROM runplane.agent_throttles x JOIN runplane.leases l ON l.agent_id = x.agent_id
              WHERE x.throttle_id = t.id)) END AS room
      FROM runplane.throttles t WHERE t.id = ANY (v_throttles)),
  agent_room AS MATERIALIZED (
    SELECT a.id AS agent_id, least(v_limit,
             CASE WHEN a.max_concurrent_tasks IS NOT NULL THEN a.max_concurrent_tasks - (
               SELECT count(*) FROM runplane.leases l WHERE l.agent_id = a.id) END,
             (SELECT min(CASE WHEN t.open THEN t.room ELSE 0 END) FROM runplane.agent_throttles x
                JOIN throttle_room t ON t.id = x.throttle_id WHERE x.agent_id = a.id)) AS room
      FROM runplane.agents a JOIN runplane.queues q ON q.id = a.queue_id
     WHERE a.id = ANY (v_agents) AND NOT a.paused AND NOT q.paused),
  heads AS MATERIALIZED (
    SELECT g.agent_id, g.room, row_number() OVER (ORDER BY h.priority_key, h.rank, h.task_id) AS n
      FROM agent_room g CROSS JOIN LATERAL (
        SELECT r.priority_key, r.rank, r.task_id FROM runplane.ready_tasks r WHERE r.agent_id = g.agent_id
         ORDER BY r.priority_key, r.rank, r.task_id LIMIT 1) h
     WHERE g.room > 0
     ORDER BY h.priority_key, h.rank, h.task_id LIMIT v_limit),
  candidates AS MATERIALIZED (
    SELECT c.* FROM heads h CROSS JOIN LATERAL (
        SELECT r.ctid AS place, r.agent_id, r.priority_key, r.rank, r.task_id, r.run_id FROM runplane.ready_tasks r WHERE r.agent_id = h.agent_id
         ORDER BY r.priority_key, r.rank, r.task_id LIMIT least(h.room, v_limit - h.n + 1)) c
     ORDER BY c.priority_key, c.rank, c.task_id LIMIT v_limit),
  over_throttle AS MATERIALIZED (
    SELECT o.task_id FROM (
      SELECT c.task_id, t.room, row_number() OVER (PARTITION BY t.id ORDER BY c.priority_key, c.rank, c.task_id) AS n
        FROM throttle_room t JOIN runplane.agent_throttles x ON x.throttle_id = t.id JOIN candidates c ON c.agent_id = x.agent_id
       WHERE t.room < v_limit) o
     WHERE o.n > o.room)
  SELECT array_agg(c.place), array_agg(c.task_id), array_agg(c.run_id) INTO v_places, v_tasks, v_runs FROM candidates c
   WHERE c.task_id <> ALL (ARRAY(SELECT o.task_id FROM over_throttle o));
  IF v_tasks IS NULL THEN RETURN; END IF;

  -- A run's first claim starts it. Runs come before tasks in the lock order; one that a cancel holds is left alone.
  SELECT coalesce(array_agg(x.id), '{}') INTO v_startable FROM (
    SELECT r.id FROM runplane.runs r WHERE r.id = ANY (v_runs) AND r.status = 'QUEUED' ORDER BY r.id FOR NO KEY UPDATE SKIP LOCKED) x;

  -- Mostly every task is the first of its run. Where not, the tasks of a run that is still queued are left out.
  IF cardinality(v_startable) < cardinality(v_runs) THEN
    SELECT array_agg(c.place), array_agg(c.task_id) INTO v_places, v_tasks
      FROM unnest(v_places, v_tasks, v_runs) c(place, task_id, run_id) JOIN runplane.runs u ON u.id = c.run_id
     WHERE u.status <> 'QUEUED' OR u.id = ANY (v_startable);
    IF v_tasks IS NULL THEN RETURN; END IF;
  END IF;

  -- The row that was seen at a place is still the one there, or there is another one now, of another task.
  WITH gone AS (
    DELETE FROM runplane.ready_tasks d WHERE d.ctid = ANY (ARRAY(
      SELECT r.ctid FROM unnest(v_places, v_tasks) c(place, task_id)
        JOIN runplane.ready_tasks r ON r.ctid = c.place AND r.task_id = c.task_id
         FOR UPDATE OF r SKIP LOCKED))
    RETURNING d.*),
  numbered AS (
    SELECT g.*, row_number() OVER (ORDER BY g.priority_key, g.rank, g.task_id) AS n FROM gone g),
  leased AS (
    INSERT INTO runplane.leases (attempt_id, task_id, run_id, agent_id, claim_seq, number, sequence, worker_id, claim_key,
                                 lease_seconds, started_at, expires_at, timeout_at)
    SELECT p_attempt_ids[n.n], n.task_id, n.run_id, n.agent_id, nextval('runplane.claim_order'), n.attempts + 1, n.sequence + 1,
           p_worker, p_claim_key, s.seconds, v_now, v_now + make_interval(secs => s.seconds), v_now + make_interval(secs => a.timeout_seconds)
      FROM numbered n JOIN runplane.agents a ON a.id = n.agent_id
      CROSS JOIN LATERAL (SELECT coalesce(p_lease_seconds, a.lease_seconds) AS seconds) s
     ORDER BY n.n
    RETURNING attempt_id, task_id, run_id, number, sequence),
  started AS (
    UPDATE runplane.runs r SET status = 'RUNNING', started_at = v_now, sequence = r.sequence + 1
     WHERE r.id = ANY (CASE WHEN v_startable = '{}' THEN v_startable ELSE ARRAY(SELECT g.run_id FROM gone g) END) AND r.status = 'QUEUED'
    RETURNING r.id, r.sequence),
  logged AS (
    INSERT INTO runplane.change_log (xid, seen_before, run_id, task_id, sequence, from_status, to_status, attempt_id, attempt_number, at)
    SELECT (SELECT pg_current_xact_id()), (SELECT pg_snapshot_xmax(pg_current_snapshot())), c.*, v_now FROM (
    SELECT s.id, NULL::uuid, s.sequence, 'QUEUED'::runplane.logged_status, 'RUNNING'::runplane.logged_status, NULL::uuid, NULL::integer FROM started s
    UNION ALL
    SELECT l.run_id, l.task_id, l.sequence, 'ENQUEUED', 'PROCESSING', l.attempt_id, l.number FROM leased l) c)
  SELECT array_agg(l.attempt_id) INTO v_attempts FROM leased l;

  RETURN QUERY SELECT a.* FROM runplane.assignments a WHERE a.attempt_id = ANY (v_attempts) ORDER BY a.claim_seq;
END
$$;
--> statement-breakpoint
-- Serialises all changes of the order behind these tasks' serial keys, in an order that cannot deadlock.
CREATE FUNCTION runplane.lock_serial_keys(p_tasks uuid[]) RETURNS void
LANGUAGE sql VOLATILE AS $$
  SELECT pg_advisory_xact_lock(k.hash) FROM (
    SELECT DISTINCT hashtextextended(t.agent_id::text || t.serial_key, 1) AS hash FROM runplane.tasks t
     WHERE t.id = ANY (p_tasks) AND t.serial_key IS NOT NULL ORDER BY 1) k
$$;
--> statement-breakpoint
-- Makes tasks ready that have a serial key: each takes its place behind its key, and only the first of a key is ready.
-- A task that has its place already (a first one whose retry is due) keeps it.
CREATE FUNCTION runplane.enqueue_serial_tasks(p_tasks uuid[], p_sequences integer[], p_attempts integer[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM runplane.lock_serial_keys(p_tasks);
  INSERT INTO runplane.serial_tasks (agent_id, serial_key, rank, task_id, run_id, sequence, attempts, since)
  SELECT t.agent_id, t.serial_key, nextval('runplane.enqueue_order'), t.id, t.run_id, p.sequence, p.attempts, runplane.clock()
    FROM unnest(p_tasks, p_sequences, p_attempts) WITH ORDINALITY AS p(id, sequence, attempts, n) JOIN runplane.tasks t ON t.id = p.id
   ORDER BY p.n
  ON CONFLICT (task_id) DO UPDATE SET sequence = excluded.sequence, attempts = excluded.attempts;
  PERFORM runplane.ready_serial_heads(p_tasks);
END
$$;
--> statement-breakpoint
-- Of the given tasks, those that are first of their key become ready. The keys are locked by the caller.
CREATE FUNCTION runplane.ready_serial_heads(p_tasks uuid[]) RETURNS void
LANGUAGE sql VOLATILE AS $$
  WITH heads AS (
    SELECT s.* FROM runplane.serial_tasks s
     WHERE s.task_id = ANY (p_tasks)
       AND NOT EXISTS (SELECT FROM runplane.serial_tasks b WHERE b.agent_id = s.agent_id AND b.serial_key = s.serial_key AND b.rank < s.rank)),
  placed AS (
    UPDATE runplane.tasks t SET rank = h.rank FROM heads h WHERE t.id = h.task_id RETURNING t.id, t.priority)
  INSERT INTO runplane.ready_tasks (agent_id, priority_key, rank, task_id, run_id, sequence, attempts, ready_at)
  SELECT h.agent_id, -p.priority, h.rank, h.task_id, h.run_id, h.sequence, h.attempts, runplane.clock()
    FROM heads h JOIN placed p ON p.id = h.task_id
$$;
--> statement-breakpoint
-- Terminal tasks leave their serial keys; the ones behind them become ready.
CREATE FUNCTION runplane.release_serial_tasks(p_tasks uuid[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_next uuid[];
BEGIN
  PERFORM runplane.lock_serial_keys(p_tasks);
  WITH gone AS (
    DELETE FROM runplane.serial_tasks s WHERE s.task_id = ANY (p_tasks)
      RETURNING s.agent_id, s.serial_key, s.rank,
        NOT EXISTS (SELECT FROM runplane.serial_tasks b WHERE b.agent_id = s.agent_id AND b.serial_key = s.serial_key AND b.rank < s.rank) AS first)
  SELECT array_agg(n.task_id) INTO v_next FROM (SELECT DISTINCT g.agent_id, g.serial_key FROM gone g WHERE g.first) k
    CROSS JOIN LATERAL (
      SELECT s.task_id FROM runplane.serial_tasks s
       WHERE s.agent_id = k.agent_id AND s.serial_key = k.serial_key AND s.task_id <> ALL (p_tasks) ORDER BY s.rank LIMIT 1) n;
  PERFORM runplane.ready_serial_heads(v_next);
END
$$;
--> statement-breakpoint
-- Makes due tasks ready: they take the place of now, not of when they were delayed.
CREATE FUNCTION runplane.move_due_tasks(p_limit integer) RETURNS integer
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_tasks uuid[];
  v_sequences integer[];
  v_attempts integer[];
  v_moved integer;
BEGIN
  WITH due AS (
    DELETE FROM runplane.delayed_tasks d WHERE (d.available_at, d.task_id) IN (
      SELECT x.available_at, x.task_id FROM runplane.delayed_tasks x WHERE x.available_at <= runplane.clock()
       ORDER BY x.available_at, x.task_id LIMIT p_limit FOR UPDATE SKIP LOCKED)
    RETURNING d.*),
  placed AS (
    UPDATE runplane.tasks t SET rank = nextval('runplane.enqueue_order') FROM due d WHERE t.id = d.task_id AND t.serial_key IS NULL
    RETURNING t.id, t.rank, t.priority),
  ready AS (
    INSERT INTO runplane.ready_tasks (agent_id, priority_key, rank, task_id, run_id, sequence, attempts, ready_at)
    SELECT d.agent_id, -p.priority, p.rank, d.task_id, d.run_id, d.sequence, d.attempts, runplane.clock()
      FROM due d JOIN placed p ON p.id = d.task_id),
  serial AS (
    SELECT d.* FROM due d JOIN runplane.tasks t ON t.id = d.task_id WHERE t.serial_key IS NOT NULL)
  SELECT (SELECT count(*) FROM due), array_agg(s.task_id ORDER BY s.available_at), array_agg(s.sequence ORDER BY s.available_at), array_agg(s.attempts ORDER BY s.available_at)
    INTO v_moved, v_tasks, v_sequences, v_attempts FROM serial s;
  IF v_tasks IS NOT NULL THEN
    PERFORM runplane.enqueue_serial_tasks(v_tasks, v_sequences, v_attempts);
  END IF;
  RETURN v_moved;
END
$$;
