-- Tokens that budgets count: what was read from a cache is not among them.
CREATE FUNCTION runplane.counted_tokens(u runplane.usage) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT least(1000000000000, coalesce(u.input_tokens, 0) + coalesce(u.cache_write_tokens, 0) + coalesce(u.cache_write_1h_tokens, 0)
                              + coalesce(u.output_tokens, 0) + coalesce(u.reasoning_tokens, 0))
$$;
--> statement-breakpoint
-- All that an attempt used of them.
CREATE FUNCTION runplane.tokens_of_attempt(p_task uuid, p_attempt uuid) RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT least(1000000000000, coalesce(sum(runplane.counted_tokens(u)), 0))::bigint
    FROM runplane.usage u WHERE u.task_id = p_task AND u.attempt_id = p_attempt
$$;
--> statement-breakpoint
-- Books what attempts used: an array of objects with an attempt_id each. A provider's answer counts once, over heartbeats,
-- attempts and repeated results. Of a task that was deleted no payload comes back.
--
-- Settles what throttles with a budget count, too. A claim counted one request: the attempt's own count corrects it, at
-- the time of the claim where it made less. What an attempt used is known when it ends: whoever ends it keeps it to learn
-- from, and what comes later corrects that. What is counted of anything ends at 10^12, more than any budget has, so that no
-- sum of it is too large for a column.
CREATE FUNCTION runplane.book_usage(p_usage json) RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_material = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
  WITH now AS MATERIALIZED (SELECT runplane.clock() AS at),
  given AS MATERIALIZED (
    SELECT u.*, t.id AS task_id, t.run_id, t.agent_id, t.deleted_at IS NOT NULL AS deleted
      FROM json_to_recordset(p_usage) AS u(attempt_id uuid, model text, provider text, "responseId" text,
        "inputTokens" bigint, "cacheReadTokens" bigint, "cacheWriteTokens" bigint, "cacheWrite1hTokens" bigint, "outputTokens" bigint,
        "reasoningTokens" bigint, requests int, cost numeric, raw jsonb, at timestamptz)
      JOIN runplane.tasks t ON t.id = coalesce(
        (SELECT l.task_id FROM runplane.leases l WHERE l.attempt_id = u.attempt_id),
        (SELECT x.task_id FROM runplane.attempts x WHERE x.id = u.attempt_id))),
  booked AS (
    INSERT INTO runplane.usage (attempt_id, task_id, run_id, agent_id, model, provider, response_id, input_tokens, cache_read_tokens,
      cache_write_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens, requests, llm_cost, raw, at)
    SELECT u.attempt_id, u.task_id, u.run_id, u.agent_id, coalesce(u.model, (SELECT a.default_model FROM runplane.agents a WHERE a.id = u.agent_id)),
           u.provider, u."responseId", u."inputTokens", u."cacheReadTokens", u."cacheWriteTokens", u."cacheWrite1hTokens",
           u."outputTokens", u."reasoningTokens", u.requests, u.cost, CASE WHEN NOT u.deleted THEN u.raw END, coalesce(u.at, n.at)
      FROM given u CROSS JOIN now n
     ORDER BY u."responseId"
    ON CONFLICT (response_id) WHERE response_id IS NOT NULL DO NOTHING
    RETURNING attempt_id, task_id, agent_id, requests, at, runplane.counted_tokens(usage) AS tokens),
  budgets AS MATERIALIZED (
    SELECT x.agent_id, x.throttle_id, h.max_tokens_per_minute IS NOT NULL AS counts_tokens,
           coalesce(h.max_requests_per_minute, h.max_requests_per_second) IS NOT NULL AS counts_requests
      FROM (SELECT DISTINCT b.agent_id FROM booked b) b
      JOIN runplane.agent_throttles x ON x.agent_id = b.agent_id
      JOIN runplane.throttles h ON h.id = x.throttle_id
     WHERE coalesce(h.max_tokens_per_minute, h.max_requests_per_minute, h.max_requests_per_second) IS NOT NULL),
  corrected AS MATERIALIZED (
    -- What this statement books is not seen here: the claim's one request is taken off with an attempt's first usage.
    -- OFFSET 0: looked up for each, where a plan could hash the usage of all.
    SELECT b.attempt_id, b.agent_id, (sum(b.requests) - CASE WHEN EXISTS (
             SELECT FROM runplane.usage o WHERE o.task_id = b.task_id AND o.attempt_id = b.attempt_id OFFSET 0) THEN 0 ELSE 1 END)::int AS requests
      FROM booked b WHERE EXISTS (SELECT FROM budgets g WHERE g.counts_requests)
     GROUP BY b.attempt_id, b.task_id, b.agent_id),
  used AS (
    INSERT INTO runplane.throttle_use (throttle_id, at, tokens, requests)
    SELECT u.throttle_id, u.at, least(1000000000000, sum(u.tokens)), least(2147483647, sum(u.requests)) FROM (
      SELECT g.throttle_id, least(b.at, n.at) AS at, b.tokens, 0 AS requests
        FROM booked b JOIN budgets g ON g.agent_id = b.agent_id AND g.counts_tokens CROSS JOIN now n
      UNION ALL
      SELECT g.throttle_id, CASE WHEN c.requests > 0 THEN n.at ELSE coalesce(
               (SELECT l.started_at FROM runplane.leases l WHERE l.attempt_id = c.attempt_id),
               (SELECT x.started_at FROM runplane.attempts x WHERE x.id = c.attempt_id)) END, 0, c.requests
        FROM corrected c JOIN budgets g ON g.agent_id = c.agent_id AND g.counts_requests CROSS JOIN now n WHERE c.requests <> 0) u
      CROSS JOIN now n
     WHERE u.at > n.at - interval '60 s' GROUP BY u.throttle_id, u.at),
  spent AS MATERIALIZED (
    SELECT b.attempt_id, least(1000000000000, sum(b.tokens))::bigint AS tokens FROM booked b
     WHERE b.agent_id IN (SELECT g.agent_id FROM budgets g WHERE g.counts_tokens) GROUP BY b.attempt_id),
  -- By keys and not by a join, which could compare each lease with each attempt.
  settled AS (
    UPDATE runplane.leases l
       SET settled_tokens = l.settled_tokens + ((SELECT jsonb_object_agg(s.attempt_id, s.tokens) FROM spent s) ->> l.attempt_id::text)::bigint
     WHERE l.attempt_id = ANY (ARRAY(SELECT s.attempt_id FROM spent s)))
  INSERT INTO runplane.settled_attempts AS s (attempt_id, agent_id, tokens, expected_tokens, seconds)
  SELECT x.id, b.agent_id, least(1000000000000, sum(b.tokens) + runplane.tokens_of_attempt(x.task_id, x.id)),
         (SELECT t.estimated_tokens FROM runplane.tasks t WHERE t.id = x.task_id), extract(epoch FROM x.finished_at - x.started_at)
    FROM booked b JOIN runplane.attempts x ON x.id = b.attempt_id
   WHERE b.agent_id IN (SELECT g.agent_id FROM budgets g WHERE g.counts_tokens)
   GROUP BY b.agent_id, x.id
   ORDER BY x.id
  ON CONFLICT (attempt_id) DO UPDATE SET tokens = excluded.tokens;
END
$$;
--> statement-breakpoint
-- Fills a throttle's window with what agents used in the last minute, where it counts from now on what it did not count
-- before: all its agents (null) when a limit was switched on, those that joined it else. What is counted since must not be
-- read twice, so the caller holds the throttle's lock: nobody claims under it, and whoever books usage of a running attempt
-- has locked its lease. One that leaves a throttle and is back within the minute is counted twice until that is over.
--
-- No index knows usage or attempts by agent or time, and the tables may be of any length. Usage is numbered as it is
-- booked, so it is read backwards until nothing of 5,000 is of the last minute. Attempts are numbered by the processes that
-- claim: two minutes more are looked at than asked for, since their clocks may differ from this one.
CREATE FUNCTION runplane.fill_window(p_throttle uuid, p_agents uuid[], p_tokens boolean, p_requests boolean) RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_material = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_now timestamptz;
  v_tokens boolean;
  v_requests boolean;
  v_agents uuid[] := coalesce(p_agents, ARRAY(SELECT x.agent_id FROM runplane.agent_throttles x WHERE x.throttle_id = p_throttle));
  v_running uuid[];
  v_next bigint := 9223372036854775807;
  v_recent bigint := 1;
BEGIN
  SELECT p_tokens AND t.max_tokens_per_minute IS NOT NULL, p_requests AND coalesce(t.max_requests_per_minute, t.max_requests_per_second) IS NOT NULL
    INTO v_tokens, v_requests FROM runplane.throttles t WHERE t.id = p_throttle;
  IF NOT (v_tokens OR v_requests) OR v_agents = '{}' THEN RETURN; END IF;

  SELECT array_agg(x.attempt_id) INTO v_running FROM (
    SELECT l.attempt_id FROM runplane.leases l
     WHERE l.attempt_id = ANY (ARRAY(SELECT r.attempt_id FROM unnest(v_agents) a(id) CROSS JOIN LATERAL runplane.live_leases(a.id) r))
     ORDER BY l.attempt_id FOR UPDATE) x;
  v_now := runplane.clock();

  IF p_agents IS NULL THEN
    -- Of a time when the limit was on before.
    UPDATE runplane.throttle_use u SET tokens = CASE WHEN v_tokens THEN 0 ELSE u.tokens END, requests = CASE WHEN v_requests THEN 0 ELSE u.requests END
     WHERE u.throttle_id = p_throttle AND u.at > v_now - interval '60 s';
  END IF;

  WHILE v_recent > 0 LOOP
    WITH latest AS MATERIALIZED (
      SELECT u.id, u.agent_id, runplane.counted_tokens(u) AS tokens, u.requests, u.at,
             u.at > v_now - interval '60 s' AND u.at <= v_now + interval '60 s' AS is_recent
        FROM runplane.usage u WHERE u.id < v_next ORDER BY u.id DESC LIMIT 5000),
    used AS (
      INSERT INTO runplane.throttle_use (throttle_id, at, tokens, requests)
      SELECT p_throttle, least(l.at, v_now), CASE WHEN v_tokens THEN least(1000000000000, sum(l.tokens)) ELSE 0 END,
             CASE WHEN v_requests THEN least(2147483647, sum(l.requests)) ELSE 0 END
        FROM latest l WHERE l.is_recent AND l.agent_id = ANY (v_agents) GROUP BY 2)
    SELECT min(l.id), count(*) FILTER (WHERE l.is_recent) INTO v_next, v_recent FROM latest l;
  END LOOP;

  IF v_tokens THEN
    -- What they used of their estimates is not reserved beside it.
    UPDATE runplane.leases l SET settled_tokens = runplane.tokens_of_attempt(l.task_id, l.attempt_id) WHERE l.attempt_id = ANY (v_running);
  END IF;
  IF v_requests THEN
    -- One request each, until an attempt tells of usage.
    INSERT INTO runplane.throttle_use (throttle_id, at, tokens, requests)
    SELECT p_throttle, c.started_at, 0, count(*) FROM (
      SELECT l.attempt_id, l.task_id, l.started_at FROM runplane.leases l WHERE l.attempt_id = ANY (v_running) AND l.started_at > v_now - interval '60 s'
      UNION ALL
      SELECT x.id, x.task_id, x.started_at FROM runplane.attempts x
       WHERE x.id >= (lpad(to_hex((extract(epoch FROM v_now - interval '180 s') * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
         AND x.started_at > v_now - interval '60 s'
         AND EXISTS (SELECT FROM runplane.tasks t WHERE t.id = x.task_id AND t.agent_id = ANY (v_agents) OFFSET 0)) c
     WHERE NOT EXISTS (SELECT FROM runplane.usage u WHERE u.task_id = c.task_id AND u.attempt_id = c.attempt_id OFFSET 0)
     GROUP BY c.started_at;
  END IF;
END
$$;
--> statement-breakpoint
-- Completes those of the attempts after which nothing has to be decided: they hold their leases, their tasks have no serial
-- key, their runs are not cancelled, nothing in them waits for a step or was spawned, and either tasks remain open or no
-- other task was ever there. Answers these, as columns; the others are left as they are.
--
-- First the locks of the runs, under which nothing but a claim changes their tasks, and of the leases, in the order in which
-- heartbeats lock them; then all the rest, in a statement of its own, which therefore sees what the locks waited for.
CREATE FUNCTION runplane.complete_attempts(
  p_attempts uuid[], p_outputs jsonb[], p_digests text[], p_sanitized boolean[], p_confidences float8[], p_trace_ids text[],
  p_external_run_ids text[], p_usage json
) RETURNS json
LANGUAGE plpgsql VOLATILE
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_material = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_attempts uuid[] := '{}';
  v_tasks uuid[] := '{}';
  v_gone bigint;
  v_usage json;
BEGIN
  IF (SELECT bool_or(x.blocked_tasks = 0 AND NOT x.has_spawned) IS NOT TRUE FROM (
       SELECT r.blocked_tasks, r.has_spawned FROM runplane.runs r
        WHERE r.id = ANY (ARRAY(SELECT l.run_id FROM runplane.leases l WHERE l.attempt_id = ANY (p_attempts)))
        ORDER BY r.id FOR NO KEY UPDATE) x) THEN
    RETURN json_build_object('attemptId', v_attempts, 'taskId', v_tasks);
  END IF;
  PERFORM FROM runplane.leases l WHERE l.attempt_id = ANY (p_attempts) ORDER BY l.attempt_id FOR UPDATE;

  WITH moment AS MATERIALIZED (
    SELECT runplane.clock() AS now, pg_current_xact_id() AS xid, pg_snapshot_xmax(pg_current_snapshot()) AS seen_before),
  -- Looked up and not joined: a plan made while there were few leases would compare each of them with each attempt.
  held AS MATERIALIZED (
    SELECT h.*, r.is_over, r.status, r.sequence AS run_sequence
      FROM (
        SELECT g.*, l.*, count(*) OVER (PARTITION BY l.run_id) AS closed
          FROM unnest(p_attempts, p_outputs, p_digests, p_sanitized, p_confidences, p_trace_ids, p_external_run_ids)
                 AS g(attempt_id, output, digest, sanitized, confidence, trace_id, external_run_id)
         CROSS JOIN LATERAL (
           SELECT x.task_id, x.run_id, x.agent_id, x.number, x.sequence, x.worker_id, x.started_at, x.settled_tokens
             FROM runplane.leases x WHERE x.attempt_id = g.attempt_id OFFSET 0) l
         CROSS JOIN LATERAL (SELECT FROM runplane.tasks t WHERE t.id = l.task_id AND t.serial_key IS NULL OFFSET 0) t) h
     CROSS JOIN LATERAL (
       SELECT x.status, x.sequence, x.open_tasks = h.closed AS is_over FROM runplane.runs x
        WHERE x.id = h.run_id AND x.blocked_tasks = 0 AND NOT x.has_spawned AND x.cancel_requested_at IS NULL
          AND (x.open_tasks > h.closed OR x.total_tasks = h.closed) OFFSET 0) r),
  gone AS (
    DELETE FROM runplane.leases l WHERE l.attempt_id = ANY (ARRAY(SELECT h.attempt_id FROM held h)) RETURNING l.attempt_id),
  ended AS (
    INSERT INTO runplane.attempts (id, task_id, run_id, number, status, counted, worker_id, external_run_id, trace_id, sanitized,
                                   confidence, result_digest, compute_cost, started_at, finished_at)
    SELECT h.attempt_id, h.task_id, h.run_id, h.number, 'COMPLETED', true, h.worker_id, h.external_run_id, h.trace_id, h.sanitized, h.confidence,
           decode(h.digest, 'hex'),
           coalesce(round(a.compute_cost_per_hour * extract(epoch FROM m.now - h.started_at) / 3600, 12), 0),
           h.started_at, m.now
      FROM held h JOIN runplane.agents a ON a.id = h.agent_id CROSS JOIN moment m),
  learned AS (
    INSERT INTO runplane.settled_attempts (attempt_id, agent_id, tokens, expected_tokens, seconds)
    SELECT h.attempt_id, h.agent_id, runplane.tokens_of_attempt(h.task_id, h.attempt_id),
           (SELECT t.estimated_tokens FROM runplane.tasks t WHERE t.id = h.task_id), extract(epoch FROM m.now - h.started_at)
      FROM held h CROSS JOIN moment m WHERE h.settled_tokens > 0),
  finished AS (
    UPDATE runplane.tasks t SET state = 'COMPLETED', output = h.output, confidence = h.confidence, sequence = h.sequence + 1, finished_at = m.now,
           error_code = NULL, error_kind = NULL, error_message = NULL
      FROM held h CROSS JOIN moment m WHERE t.id = h.task_id),
  forgotten AS (
    DELETE FROM runplane.task_progress p WHERE p.task_id = ANY (ARRAY(SELECT h.task_id FROM held h))),
  followed AS (
    UPDATE runplane.runs r SET open_tasks = r.open_tasks - h.closed, status = CASE WHEN h.is_over THEN 'COMPLETED' ELSE r.status END,
           sequence = r.sequence + h.is_over::integer, finished_at = CASE WHEN h.is_over THEN m.now END
      FROM (SELECT DISTINCT x.run_id, x.closed, x.is_over FROM held x) h CROSS JOIN moment m WHERE r.id = h.run_id),
  logged AS (
    INSERT INTO runplane.change_log (xid, seen_before, run_id, task_id, sequence, from_status, to_status, attempt_id, attempt_number, at)
    SELECT m.xid, m.seen_before, x.*, m.now FROM moment m CROSS JOIN (
      SELECT h.run_id, h.task_id, h.sequence + 1, 'PROCESSING'::runplane.logged_status, 'COMPLETED'::runplane.logged_status, h.attempt_id, h.number FROM held h
      UNION ALL
      SELECT DISTINCT h.run_id, NULL::uuid, h.run_sequence + 1, h.status::text::runplane.logged_status, 'COMPLETED'::runplane.logged_status, NULL::uuid, NULL::integer
        FROM held h WHERE h.is_over) x)
  SELECT coalesce(array_agg(h.attempt_id), '{}'), coalesce(array_agg(h.task_id), '{}'), (SELECT count(*) FROM gone)
    INTO v_attempts, v_tasks, v_gone FROM held h;
  PERFORM runplane.must_be_equal(v_gone, cardinality(v_attempts), 'attempts that end and had a lease');

  v_usage := (SELECT json_agg(u) FROM json_array_elements(p_usage) u WHERE (u ->> 'attempt_id')::uuid = ANY (v_attempts));
  IF v_usage IS NOT NULL THEN
    PERFORM runplane.book_usage(v_usage);
  END IF;
  RETURN json_build_object('attemptId', v_attempts, 'taskId', v_tasks);
END
$$;
