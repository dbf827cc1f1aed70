-- What a worker gets for a lease: one definition for first and repeated claims. All that belongs to a lease is looked up
-- and not joined: no plan may begin elsewhere, or go through all leases because their order would suit a join.
CREATE VIEW runplane.assignments AS
SELECT l.attempt_id, l.task_id, l.run_id, l.agent_id, l.worker_id, l.claim_key, l.claim_seq, l.number, l.lease_seconds,
       l.started_at, l.expires_at, t.step, coalesce(t.input, r.config) AS input, t.serial_key,
       coalesce(t.labels, r.labels) AS labels, r.customer, r.correlation_id, r.event_id, p.checkpoint, a.name AS agent, a.handler,
       extract(epoch FROM l.timeout_at - l.started_at)::integer AS timeout_seconds, r.trace_context
  FROM runplane.leases l
 CROSS JOIN LATERAL (SELECT x.step, x.input, x.serial_key, x.labels FROM runplane.tasks x WHERE x.id = l.task_id OFFSET 0) t
 CROSS JOIN LATERAL (SELECT x.config, x.labels, x.customer, x.correlation_id, x.event_id, x.trace_context FROM runplane.runs x WHERE x.id = l.run_id OFFSET 0) r
  LEFT JOIN LATERAL (SELECT x.checkpoint FROM runplane.task_progress x WHERE x.task_id = l.task_id OFFSET 0) p ON true
 CROSS JOIN LATERAL (SELECT x.name, x.handler FROM runplane.agents x WHERE x.id = l.agent_id OFFSET 0) a;
--> statement-breakpoint
-- That a pool runs the tasks of a queue: of its own ones, and where it is elastic of those that lend to it.
CREATE FUNCTION runplane.serves(p_pool uuid, p_elastic boolean, p_queue_pool uuid, p_shared_weight smallint) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
  SELECT p_pool = p_queue_pool OR p_elastic AND p_shared_weight > 0
$$;
--> statement-breakpoint
-- An agent's running attempts, looked for behind those that scan_starts knows to be over.
CREATE FUNCTION runplane.live_leases(p_agent uuid) RETURNS SETOF runplane.leases
LANGUAGE sql STABLE AS $$
  SELECT l.* FROM runplane.leases l
   WHERE l.agent_id = p_agent AND l.claim_seq >= coalesce((SELECT s.lease_from FROM runplane.scan_starts s WHERE s.agent_id = p_agent), 0)
$$;
--> statement-breakpoint
-- Tokens that an attempt is expected to use: as its task says, with what the agent's tasks fall short of it; else as the
-- agent's attempts have used; else 4,000. Never more than 10^12, which no budget has, so that sums of it fit.
CREATE FUNCTION runplane.expected_tokens(p_task bigint, p_agent runplane.agent_estimates) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT least(1000000000000, coalesce(CASE WHEN p_agent.shortfall > 1 THEN ceil(p_task * p_agent.shortfall)::bigint ELSE p_task END, p_agent.tokens, 4000))
$$;
--> statement-breakpoint
-- Of these, what it may use in the next 60 s: the rest, and of an attempt that takes longer than that only its share.
CREATE FUNCTION runplane.reserved_tokens(p_expected bigint, p_settled bigint, p_seconds float8) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT greatest(0, least(p_expected - p_settled,
    CASE WHEN p_seconds > 60 THEN ceil(p_expected * 60 / p_seconds)::bigint ELSE p_expected END))
$$;
--> statement-breakpoint
-- The agent's first ready task. Of one priority the scan begins where scan_starts knows the first one to be, or later.
CREATE FUNCTION runplane.ready_head(p_agent uuid) RETURNS TABLE (priority_key smallint, turn bigint, rank bigint, task_id uuid)
LANGUAGE sql STABLE ROWS 1 AS $$
  SELECT h.* FROM (SELECT 1) one LEFT JOIN runplane.scan_starts s ON s.agent_id = p_agent AND s.priority_key IS NOT NULL
   CROSS JOIN LATERAL (
    (SELECT r.priority_key, r.turn, r.rank, r.task_id FROM runplane.ready_tasks r
      WHERE r.agent_id = p_agent AND r.priority_key < coalesce(s.priority_key, 32767::smallint) ORDER BY r.priority_key, r.turn, r.rank LIMIT 1)
    UNION ALL
    (SELECT r.priority_key, r.turn, r.rank, r.task_id FROM runplane.ready_tasks r
      WHERE r.agent_id = p_agent AND r.priority_key = s.priority_key AND (r.turn, r.rank) >= (s.turn, s.rank) ORDER BY r.turn, r.rank LIMIT 1)
    UNION ALL
    (SELECT r.priority_key, r.turn, r.rank, r.task_id FROM runplane.ready_tasks r
      WHERE r.agent_id = p_agent AND r.priority_key > s.priority_key ORDER BY r.priority_key, r.turn, r.rank LIMIT 1)) h
   LIMIT 1
$$;
--> statement-breakpoint
-- Moves the starts of scans past what is dead; the caller holds the agents' locks, so nobody else claims of them meanwhile.
--
-- Leases: later claims draw higher numbers, so the lowest live one bounds all that will ever be. Attempts that take long
-- would keep counts at all that ended since they began: when many others were claimed meanwhile they draw new numbers, in
-- the order of the old ones. Who ends one at this moment is not waited for.
-- Ready tasks: what becomes ready gets a turn after the one that its lane is at. So all that come later are after a turn
-- that a lane was seen at, but for those of transactions that were under way then; when these are over, the first task
-- that is visible up to that turn is the first that will ever be. A task that keeps its turn while its serial key is
-- held could come back before; while an agent has such tasks its start stays where it is, which is before all of theirs.
CREATE FUNCTION runplane.advance_scans(p_agents uuid[], p_now timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_drawn bigint;
BEGIN
  IF NOT EXISTS (
    SELECT FROM unnest(p_agents) a(id) LEFT JOIN runplane.scan_starts s ON s.agent_id = a.id
     WHERE s.changed_at > p_now - interval '250 ms' IS NOT TRUE) THEN RETURN; END IF;

  SELECT q.last_value INTO v_drawn FROM runplane.claim_order q;
  WITH moved AS MATERIALIZED (
    SELECT o.attempt_id, nextval('runplane.claim_order') AS claim_seq
      FROM runplane.scan_starts s
     CROSS JOIN LATERAL (
       SELECT 5000 + 20 * count(*) AS distance FROM runplane.leases x WHERE x.agent_id = s.agent_id AND x.claim_seq >= s.lease_from) k
     CROSS JOIN LATERAL (
       SELECT x.attempt_id FROM runplane.leases x
        WHERE x.agent_id = s.agent_id AND x.claim_seq >= s.lease_from AND x.claim_seq < v_drawn - k.distance / 2 AND s.lease_from < v_drawn - k.distance
        ORDER BY x.claim_seq FOR UPDATE SKIP LOCKED) o
     WHERE s.agent_id = ANY (p_agents) AND s.lease_from < v_drawn - 5000 AND s.changed_at <= p_now - interval '250 ms')
  UPDATE runplane.leases l SET claim_seq = (SELECT m.claim_seq FROM moved m WHERE m.attempt_id = l.attempt_id)
   WHERE l.attempt_id = ANY (ARRAY(SELECT m.attempt_id FROM moved m));

  INSERT INTO runplane.scan_starts AS s (agent_id, lease_from, priority_key, turn, rank, next_priority_key, next_turn, next_xid, changed_at)
  SELECT a.id, coalesce(l.claim_seq, nextval('runplane.claim_order')),
         CASE WHEN k.holds THEN o.next_priority_key ELSE o.priority_key END,
         CASE WHEN NOT k.holds THEN o.turn WHEN f.turn <= o.next_turn THEN f.turn ELSE o.next_turn + 1 END,
         CASE WHEN NOT k.holds THEN o.rank WHEN f.turn <= o.next_turn THEN f.rank ELSE 0 END,
         CASE WHEN k.renewed THEN n.priority_key ELSE o.next_priority_key END,
         CASE WHEN k.renewed THEN n.turn ELSE o.next_turn END,
         CASE WHEN k.renewed AND n.turn IS NOT NULL THEN pg_snapshot_xmax(pg_current_snapshot()) WHEN NOT k.renewed THEN o.next_xid END,
         p_now
    FROM runplane.agents a
    LEFT JOIN runplane.scan_starts o ON o.agent_id = a.id
   CROSS JOIN LATERAL (
     SELECT o.next_xid <= pg_snapshot_xmin(pg_current_snapshot()) IS TRUE
            AND NOT EXISTS (SELECT FROM runplane.serial_tasks q WHERE q.agent_id = a.id) AS holds,
            -- One that is not past after all is not of this database's time.
            coalesce(o.next_xid <= pg_snapshot_xmin(pg_current_snapshot()) OR o.next_xid > pg_snapshot_xmax(pg_current_snapshot()), true) AS renewed
     OFFSET 0) k
    LEFT JOIN LATERAL (
     SELECT x.claim_seq FROM runplane.leases x WHERE x.agent_id = a.id AND x.claim_seq >= coalesce(o.lease_from, 0)
      ORDER BY x.claim_seq LIMIT 1) l ON true
    LEFT JOIN LATERAL (
     SELECT r.turn, r.rank FROM runplane.ready_tasks r
      WHERE k.holds AND r.agent_id = a.id AND r.priority_key = o.next_priority_key
        AND (r.turn, r.rank) >= (CASE WHEN o.priority_key = o.next_priority_key THEN o.turn ELSE 0 END, CASE WHEN o.priority_key = o.next_priority_key THEN o.rank ELSE 0 END)
      ORDER BY r.turn, r.rank LIMIT 1) f ON true
    LEFT JOIN LATERAL (
     SELECT h.priority_key, t.turn FROM runplane.ready_head(a.id) h
       JOIN runplane.lane_turns t ON t.queue_id = a.queue_id AND t.priority = -h.priority_key WHERE k.renewed) n ON true
   WHERE a.id = ANY (p_agents) AND o.changed_at > p_now - interval '250 ms' IS NOT TRUE
   ORDER BY a.id
  ON CONFLICT (agent_id) DO UPDATE SET lease_from = excluded.lease_from, priority_key = excluded.priority_key, turn = excluded.turn, rank = excluded.rank,
    next_priority_key = excluded.next_priority_key, next_turn = excluded.next_turn, next_xid = excluded.next_xid, changed_at = excluded.changed_at;
END
$$;
--> statement-breakpoint
-- Both of a task that nobody executes yet.
CREATE FUNCTION runplane.tokens_of_task(p_task uuid) RETURNS TABLE (expected bigint, need bigint)
LANGUAGE sql STABLE ROWS 1 AS $$
  SELECT y.expected, runplane.reserved_tokens(y.expected, 0, y.seconds)
    FROM (SELECT runplane.expected_tokens(t.estimated_tokens, e) AS expected, e.seconds
            FROM runplane.tasks t LEFT JOIN runplane.agent_estimates e ON e.agent_id = t.agent_id WHERE t.id = p_task OFFSET 0) y
$$;
--> statement-breakpoint
-- What live leases under a throttle that began after a time reserve. Agent by agent: a join could go through all leases,
-- whatever throttle they are under.
CREATE FUNCTION runplane.tokens_of_leases(p_throttle uuid, p_after timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT coalesce(sum(c.tokens), 0)::bigint FROM runplane.agent_throttles x
    LEFT JOIN runplane.agent_estimates e ON e.agent_id = x.agent_id CROSS JOIN LATERAL (
      SELECT sum(runplane.reserved_tokens(coalesce(l.estimated_tokens, runplane.expected_tokens(NULL, e)), l.settled_tokens, e.seconds)) AS tokens
        FROM runplane.live_leases(x.agent_id) l WHERE l.started_at > p_after) c
   WHERE x.throttle_id = p_throttle
$$;
--> statement-breakpoint
-- What throttles have in use and what their limits leave beside it: the one definition for claims, for what is shown, and
-- for why tasks wait. Tokens in use are those settled in the last 60 s and those reserved by live leases for the next 60 s.
-- Null is no limit.
CREATE FUNCTION runplane.throttle_state(p_throttles uuid[], p_now timestamptz)
RETURNS TABLE (throttle_id uuid, open boolean, tasks bigint, tokens bigint, requests bigint,
               task_room bigint, request_room bigint, token_limit bigint, token_room bigint)
LANGUAGE sql STABLE ROWS 4 AS $$
  SELECT t.id, t.not_before <= p_now IS NOT FALSE, u.tasks, u.tokens, u.requests,
         CASE WHEN t.max_concurrent_tasks IS NOT NULL THEN t.max_concurrent_tasks - u.tasks END,
         CASE WHEN coalesce(t.max_requests_per_minute, t.max_requests_per_second) IS NOT NULL
              THEN least(t.max_requests_per_minute - u.requests, t.max_requests_per_second - u.requests_of_second) END,
         t.max_tokens_per_minute::bigint,
         CASE WHEN t.max_tokens_per_minute IS NOT NULL THEN t.max_tokens_per_minute - u.tokens END
    FROM runplane.throttles t
    CROSS JOIN LATERAL (
      SELECT (SELECT coalesce(sum(c.leases), 0)::bigint FROM runplane.agent_throttles x CROSS JOIN LATERAL (
                SELECT count(*) AS leases FROM runplane.live_leases(x.agent_id)) c
               WHERE x.throttle_id = t.id) AS tasks,
             (SELECT coalesce(sum(s.tokens), 0)::bigint FROM runplane.throttle_use s WHERE s.throttle_id = t.id AND s.at > p_now - interval '60 s')
           + runplane.tokens_of_leases(t.id, '-infinity') AS tokens,
             (SELECT coalesce(sum(s.requests), 0) FROM runplane.throttle_use s WHERE s.throttle_id = t.id AND s.at > p_now - interval '60 s') AS requests,
             (SELECT coalesce(sum(s.requests), 0) FROM runplane.throttle_use s WHERE s.throttle_id = t.id AND s.at > p_now - interval '1 s') AS requests_of_second
    ) u
   WHERE t.id = ANY (p_throttles)
$$;
--> statement-breakpoint
-- When so many tokens, or requests, will have left the window of 60 s (or 1 s); null when it holds fewer.
CREATE FUNCTION runplane.window_moves(p_throttle uuid, p_now timestamptz, p_window interval, p_tokens bigint, p_requests bigint) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
  SELECT min(w.at) + p_window FROM (
    SELECT u.at, sum(u.tokens) OVER earlier AS tokens, sum(u.requests) OVER earlier AS requests
      FROM runplane.throttle_use u WHERE u.throttle_id = p_throttle AND u.at > p_now - p_window
    WINDOW earlier AS (ORDER BY u.at, u.id)) w
   WHERE w.tokens >= p_tokens AND w.requests >= p_requests
$$;
--> statement-breakpoint
-- When limits that count time may next leave room for tasks of these agents; null when nothing will by itself.
CREATE FUNCTION runplane.next_opening(p_agents uuid[], p_now timestamptz) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
  SELECT min(CASE WHEN t.not_before > p_now THEN t.not_before ELSE least(
           CASE WHEN t.max_requests_per_second IS NOT NULL THEN interval '1 s' + (
             SELECT min(u.at) FROM runplane.throttle_use u WHERE u.throttle_id = t.id AND u.at > p_now - interval '1 s') END,
           CASE WHEN coalesce(t.max_requests_per_minute, t.max_tokens_per_minute) IS NOT NULL THEN interval '60 s' + (
             SELECT min(u.at) FROM runplane.throttle_use u WHERE u.throttle_id = t.id AND u.at > p_now - interval '60 s') END) END)
    FROM runplane.throttles t
   WHERE t.id IN (SELECT x.throttle_id FROM runplane.agent_throttles x WHERE x.agent_id = ANY (p_agents))
$$;
--> statement-breakpoint
-- Learns from the last 200 attempts of each agent with a token budget what its next ones may use (the 90th percentile), how
-- long they take (the median), and, from 100 tasks on that said what they would use, by how much these fall short (the 95th
-- percentile, at most 3); and drops what nothing counts any more.
CREATE FUNCTION runplane.learn_estimates() RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := runplane.clock();
BEGIN
  -- One replica at a time is enough.
  IF NOT pg_try_advisory_xact_lock(hashtextextended('runplane.learn_estimates', 3)) THEN RETURN; END IF;
  DELETE FROM runplane.throttle_use u USING runplane.throttles t WHERE u.throttle_id = t.id AND u.at < v_now - interval '2 min';
  WITH known AS (
    SELECT s.agent_id FROM runplane.settled_attempts s GROUP BY s.agent_id),
  latest AS MATERIALIZED (
    SELECT l.* FROM known k CROSS JOIN LATERAL (
      SELECT s.* FROM runplane.settled_attempts s WHERE s.agent_id = k.agent_id ORDER BY s.id DESC LIMIT 200) l),
  learned AS MATERIALIZED (
    SELECT l.agent_id, percentile_disc(0.9) WITHIN GROUP (ORDER BY l.tokens) AS tokens, percentile_disc(0.5) WITHIN GROUP (ORDER BY l.seconds) AS seconds,
           CASE WHEN count(l.expected_tokens) FILTER (WHERE l.expected_tokens > 0) >= 100
                THEN greatest(1, least(3, percentile_disc(0.95) WITHIN GROUP (ORDER BY l.tokens::float8 / l.expected_tokens) FILTER (WHERE l.expected_tokens > 0)))
                ELSE 1 END AS shortfall,
           min(l.id) AS first
      FROM latest l GROUP BY l.agent_id),
  forgotten AS (
    DELETE FROM runplane.settled_attempts s USING learned l WHERE s.agent_id = l.agent_id AND s.id < l.first)
  INSERT INTO runplane.agent_estimates AS e (agent_id, tokens, shortfall, seconds)
  SELECT l.agent_id, l.tokens, l.shortfall, l.seconds FROM learned l ORDER BY l.agent_id
  ON CONFLICT (agent_id) DO UPDATE SET tokens = excluded.tokens, shortfall = excluded.shortfall, seconds = excluded.seconds
    WHERE (e.tokens, e.shortfall, e.seconds) IS DISTINCT FROM (excluded.tokens, excluded.shortfall, excluded.seconds);
END
$$;
--> statement-breakpoint
-- The task that a token budget makes wait, if it still does: when it has waited for nearly a window (50 of 60 s, so that what
-- began before is settled when the window is over), others of its priority or less may pass only within the slack: half of
-- what the budget leaves beside the task itself, since estimates are off, less all that passed since. One that nobody has
-- asked for in a window holds nobody up.
CREATE FUNCTION runplane.held_head(p_throttle uuid, p_token_limit bigint, p_now timestamptz)
RETURNS TABLE (task_id uuid, tokens bigint, since timestamptz, priority_key smallint, slack bigint)
LANGUAGE sql STABLE ROWS 1 AS $$
  SELECT h.task_id, h.tokens, h.since, r.priority_key,
         CASE WHEN h.since <= p_now - interval '50 s' THEN (p_token_limit - h.tokens) / 2 - (
           SELECT coalesce(sum(s.tokens), 0)::bigint FROM runplane.throttle_use s
            WHERE s.throttle_id = p_throttle AND s.at > greatest(h.since, p_now - interval '110 s') + interval '50 s') - runplane.tokens_of_leases(p_throttle, h.since + interval '50 s') END
    FROM runplane.throttle_heads h
    JOIN runplane.tasks t ON t.id = h.task_id
    JOIN runplane.ready_tasks r ON r.agent_id = t.agent_id AND r.priority_key = -t.priority AND r.turn = t.turn AND r.rank = t.rank
   WHERE h.throttle_id = p_throttle AND h.seen_at > p_now - interval '60 s'
$$;
--> statement-breakpoint
-- Remembers which task each token budget makes wait, and that it was asked for; the caller holds the throttles' locks.
CREATE FUNCTION runplane.hold_heads(
  p_throttles uuid[], p_tasks uuid[], p_tokens bigint[], p_since timestamptz[], p_blocked boolean[], p_now timestamptz
) RETURNS void
LANGUAGE sql VOLATILE AS $$
  WITH given AS MATERIALIZED (
    SELECT * FROM unnest(p_throttles, p_tasks, p_tokens, p_since, p_blocked) AS g(throttle_id, task_id, tokens, since, blocked)),
  passed AS (
    DELETE FROM runplane.throttle_heads h USING given g WHERE h.throttle_id = g.throttle_id AND g.task_id IS NULL)
  INSERT INTO runplane.throttle_heads AS h (throttle_id, task_id, tokens, since, seen_at)
  SELECT g.throttle_id, g.task_id, g.tokens, g.since, p_now FROM given g
   WHERE g.blocked AND g.task_id IS NOT NULL AND NOT EXISTS (
     SELECT FROM runplane.throttle_heads k WHERE k.throttle_id = g.throttle_id AND k.task_id = g.task_id AND k.seen_at > p_now - interval '5 s')
  ON CONFLICT (throttle_id) DO UPDATE SET task_id = excluded.task_id, tokens = excluded.tokens, since = excluded.since, seen_at = excluded.seen_at
$$;
--> statement-breakpoint
-- Decides which tasks may be claimed now; the caller holds the locks of the agents and of their throttles.
--
-- Each queue offers its best tasks: by priority, then in the turns of customers, then in the order in which they became
-- ready. Weights choose between queues: the k-th offer of a queue comes at the k-th event of a random process whose rate
-- is the weight, so that each place in the result goes to a queue with the probability of its share, and shares
-- follow the weights however few tasks a claim asks for. A weight of 0 gets what the others leave.
--
-- A full agent is out before any LIMIT, or it would hide everyone behind it. Of the n best agents of a queue the i-th
-- gives at most n - i + 1 of its n best tasks. Agents whose first task a token budget makes wait are counted for
-- themselves, and so are those whose throttles, the same ones, may lack room for a whole claim: they hide nobody else, and
-- offer no more tasks than may run. What does not fit a budget has no share of its queue's events: it takes nobody's place.
CREATE FUNCTION runplane.pick_tasks(
  p_agents uuid[], p_throttles uuid[], p_limit integer, p_pool uuid, p_now timestamptz,
  OUT tasks uuid[], OUT runs uuid[], OUT places tid[], OUT tokens bigint[])
LANGUAGE plpgsql VOLATILE
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  -- So many tasks behind those that limits may not leave room for are looked at. Mostly they have room for all: then
  -- there is nothing behind to look at.
  c_ahead CONSTANT integer := 50;
  v_ahead integer := c_ahead;
  -- One element a throttle. Rooms are null where there is no limit.
  v_throttles uuid[];
  v_room bigint[];
  v_token_limit bigint[];
  v_token_room bigint[];
  v_head uuid[];
  v_head_tokens bigint[];
  v_head_since timestamptz[];
  v_head_key smallint[];
  v_slack bigint[];
  v_blocked boolean[];
  v_budgeted boolean := false;
  -- One element an agent; of throttles their positions above, four each.
  v_agent_room bigint[];
  v_batches boolean[];
  v_of integer[][];
  -- One element a task that may be claimed if limits leave room, best first.
  v_tasks uuid[];
  v_runs uuid[];
  v_places tid[];
  v_agents integer[];
  v_keys smallint[];
  v_expected bigint[];
  v_needs bigint[];
  v_taken integer[] := '{}';
  v_need bigint;
  -- No throttle lacks room for so many tasks, nor holds back for one that waits.
  v_unhindered boolean;
  v_roomy boolean;
  v_fits boolean;
  v_serial_key text;
  v_behind record;
  n integer := 0;
  a integer;
  i integer;
BEGIN
  IF p_throttles IS NOT NULL THEN
    SELECT array_agg(s.throttle_id ORDER BY s.throttle_id),
           array_agg(CASE WHEN s.open THEN least(s.task_room, s.request_room) ELSE 0 END ORDER BY s.throttle_id),
           array_agg(s.token_limit ORDER BY s.throttle_id), array_agg(s.token_room ORDER BY s.throttle_id),
           array_agg(h.task_id ORDER BY s.throttle_id), array_agg(h.tokens ORDER BY s.throttle_id),
           array_agg(h.since ORDER BY s.throttle_id), array_agg(h.priority_key ORDER BY s.throttle_id),
           array_agg(h.slack ORDER BY s.throttle_id), array_agg(false), bool_or(s.token_limit IS NOT NULL)
      INTO v_throttles, v_room, v_token_limit, v_token_room, v_head, v_head_tokens, v_head_since, v_head_key, v_slack, v_blocked, v_budgeted
      FROM runplane.throttle_state(p_throttles, p_now) s
      LEFT JOIN LATERAL runplane.held_head(s.throttle_id, s.token_limit, p_now) h ON s.token_limit IS NOT NULL;
  END IF;

  v_unhindered := (SELECT bool_or(h IS NOT NULL) FROM unnest(v_head) h) IS NOT TRUE AND (SELECT min(r) < p_limit FROM unnest(v_room) r) IS NOT TRUE;
  IF v_unhindered THEN
    v_ahead := 0;
  END IF;

  LOOP
    WITH lanes AS MATERIALIZED (
      SELECT a.id AS agent_id, a.batch_by_serial_key AS batches, x.throttles, x.budgeted, x.tokens, x.slack, x.slack_key, a.queue_id,
             CASE WHEN x.room < p_limit OR x.budgeted AND v_ahead > 0 THEN x.throttles END AS scarce,
             CASE WHEN x.room < p_limit THEN x.room END AS scarce_room,
             CASE WHEN p_pool IS NULL OR q.pool_id = p_pool THEN q.weight ELSE q.shared_weight END AS weight,
             least(CASE WHEN a.max_concurrent_tasks IS NOT NULL THEN a.max_concurrent_tasks - (
               SELECT count(*) FROM runplane.live_leases(a.id)) END, x.room, p_limit) AS room
        FROM runplane.agents a JOIN runplane.queues q ON q.id = a.queue_id
        CROSS JOIN LATERAL (
          SELECT (array_agg(p.i ORDER BY p.i) || '{NULL,NULL,NULL,NULL}'::integer[])[1:4] AS throttles, min(v_room[p.i]) AS room,
                 coalesce(bool_or(v_token_limit[p.i] IS NOT NULL), false) AS budgeted,
                 min(CASE WHEN v_token_limit[p.i] = 0 THEN -1 WHEN v_token_room[p.i] < v_token_limit[p.i] THEN v_token_room[p.i] END) AS tokens,
                 min(v_slack[p.i]) AS slack, min(v_head_key[p.i]) FILTER (WHERE v_slack[p.i] IS NOT NULL) AS slack_key
            -- OFFSET 0: the position is searched once and not for each use.
            FROM runplane.agent_throttles y CROSS JOIN LATERAL (SELECT array_position(v_throttles, y.throttle_id) AS i OFFSET 0) p WHERE y.agent_id = a.id) x
       WHERE a.id = ANY (p_agents) AND NOT a.paused AND NOT q.paused
         AND (p_pool IS NULL OR runplane.serves(p_pool, (SELECT o.elastic FROM runplane.pools o WHERE o.id = p_pool), q.pool_id, q.shared_weight))),
    heads AS MATERIALIZED (
      SELECT l.*, w.waits, row_number() OVER (ORDER BY l.agent_id)::integer AS agent, row_number() OVER best AS n,
             dense_rank() OVER (ORDER BY l.queue_id, w.waits, l.scarce) AS part, count(*) OVER best AS agents,
             CASE WHEN NOT bool_or(l.budgeted OR l.batches) OVER best THEN l.scarce_room END AS most,
             h.priority_key AS first_key, h.turn AS first_turn, h.rank AS first_rank
        FROM lanes l CROSS JOIN LATERAL runplane.ready_head(l.agent_id) h
        CROSS JOIN LATERAL (
          SELECT (h.priority_key >= l.slack_key AND array_position(v_head, h.task_id) IS NULL AND y.need > l.slack OR y.need > l.tokens) IS TRUE AS waits
            FROM (SELECT CASE WHEN coalesce(l.tokens, l.slack) IS NOT NULL THEN (SELECT m.need FROM runplane.tokens_of_task(h.task_id) m) END AS need OFFSET 0) y) w
       WHERE l.room > 0
      WINDOW best AS (PARTITION BY l.queue_id, w.waits, l.scarce ORDER BY h.priority_key, h.turn, h.rank ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)),
    -- Part by part, so that only the best are sorted: of many agents the offers together are many times as many.
    offers AS (
      SELECT o.* FROM (
        SELECT DISTINCT h.part, h.most, (p_limit + v_ahead + h.agents - 1) / h.agents AS depth FROM heads h) q
        -- So many agents that each may run so many have enough before this one: what comes after it is not among the best.
        LEFT JOIN LATERAL (
          SELECT d.priority_key, d.turn, d.rank FROM heads h CROSS JOIN LATERAL (
            SELECT h.first_key AS priority_key, h.first_turn AS turn, h.first_rank AS rank WHERE q.depth = 1
            UNION ALL
            (SELECT r.priority_key, r.turn, r.rank FROM runplane.ready_tasks r
              WHERE q.depth > 1 AND least(h.room, p_limit - h.n + 1) >= q.depth AND r.agent_id = h.agent_id
                AND (r.priority_key, r.turn, r.rank) >= (h.first_key, h.first_turn, h.first_rank)
              ORDER BY r.priority_key, r.turn, r.rank LIMIT 1 OFFSET q.depth - 1)) d
           WHERE h.part = q.part
           ORDER BY d.priority_key, d.turn, d.rank LIMIT 1 OFFSET (p_limit + v_ahead - 1) / q.depth) last ON true
       CROSS JOIN LATERAL (
        SELECT h.agent, h.queue_id, h.weight, h.budgeted, h.tokens, h.slack, h.slack_key, c.*
          FROM heads h CROSS JOIN LATERAL (
            SELECT r.ctid AS place, r.priority_key, r.turn, r.rank, r.task_id, r.run_id FROM runplane.ready_tasks r
             WHERE r.agent_id = h.agent_id AND (r.priority_key, r.turn, r.rank) <= (
                     coalesce(last.priority_key, 32767::smallint), coalesce(last.turn, 9223372036854775807), coalesce(last.rank, 9223372036854775807))
               -- Before the first one are only dead rows, as many as claims have left since the oldest snapshot.
               AND (r.priority_key, r.turn, r.rank) >= (h.first_key, h.first_turn, h.first_rank)
             ORDER BY r.priority_key, r.turn, r.rank
             LIMIT CASE WHEN h.waits THEN p_limit + v_ahead - h.n + 1 WHEN h.budgeted AND v_ahead > 0 THEN p_limit + v_ahead ELSE least(h.room, p_limit - h.n + 1) END) c
         WHERE h.part = q.part AND h.n <= p_limit + CASE WHEN h.waits OR h.budgeted THEN v_ahead ELSE 0 END
         ORDER BY c.priority_key, c.turn, c.rank LIMIT least(p_limit + v_ahead, q.most)) o)
    SELECT array_agg(o.task_id), array_agg(o.run_id), array_agg(o.place), array_agg(o.agent), array_agg(o.priority_key),
           array_agg(o.expected), array_agg(o.need),
           (SELECT array_agg(h.room ORDER BY h.agent) FROM heads h), (SELECT array_agg(h.batches ORDER BY h.agent) FROM heads h),
           (SELECT array_agg(h.throttles ORDER BY h.agent) FROM heads h)
      INTO v_tasks, v_runs, v_places, v_agents, v_keys, v_expected, v_needs, v_agent_room, v_batches, v_of
      FROM (
        SELECT d.* FROM (
          SELECT m.task_id, m.run_id, m.place, m.agent, m.priority_key, m.weight, y.expected, y.need, row_number() OVER best AS k,
                 sum(CASE WHEN m.priority_key >= m.slack_key AND array_position(v_head, m.task_id) IS NULL AND y.need > m.slack OR y.need > m.tokens
                          THEN 0 ELSE -ln(1 - random()) END) OVER best / greatest(m.weight, 1) AS event
            FROM offers m LEFT JOIN LATERAL (SELECT t.* FROM runplane.tokens_of_task(m.task_id) t WHERE m.budgeted OFFSET 0) y ON true
          WINDOW best AS (PARTITION BY m.queue_id ORDER BY m.priority_key, m.turn, m.rank)) d
         ORDER BY d.weight = 0, d.event, d.k) o;
    IF v_tasks IS NULL THEN RETURN; END IF;

    v_roomy := v_unhindered AND NOT (true = ANY (v_batches)) AND (NOT v_budgeted OR
      (SELECT sum(x.need) FROM unnest(v_needs[1:p_limit]) x(need)) < (SELECT min(r) FROM unnest(v_token_room) r));
    EXIT WHEN v_roomy OR v_ahead > 0;
    v_ahead := c_ahead;
  END LOOP;

  -- Where limits have room for all of them, nothing more can be in the way, but for tasks that come with others.
  IF v_roomy AND v_ahead = 0 THEN
    tasks := v_tasks[1:p_limit];
    runs := v_runs[1:p_limit];
    places := v_places[1:p_limit];
    tokens := v_expected[1:p_limit];
    RETURN;
  END IF;

  -- One after another, since what one takes the next one has not. All of an agent's limits must have room.
  WHILE n < cardinality(v_tasks) AND cardinality(v_taken) < p_limit LOOP
    n := n + 1;
    a := v_agents[n];
    v_fits := v_agent_room[a] > 0;
    FOR k IN 1 .. 4 LOOP
      i := v_of[a][k];
      EXIT WHEN i IS NULL OR NOT v_fits;
      v_fits := coalesce(v_room[i] > 0, true);
    END LOOP;
    CONTINUE WHEN NOT v_fits;
    FOR k IN 1 .. 4 LOOP
      i := v_of[a][k];
      EXIT WHEN i IS NULL;
      CONTINUE WHEN v_token_limit[i] IS NULL;
      -- More than the whole budget runs alone, in an empty window.
      v_need := least(v_needs[n], v_token_limit[i]);
      IF v_need > v_token_room[i] OR v_token_limit[i] = 0 THEN
        v_fits := false;
        -- The highest priority: others could pass one of a higher priority than the one that is held for.
        IF v_head[i] IS NULL OR v_keys[n] < v_head_key[i] THEN
          v_head[i] := v_tasks[n];
          v_head_tokens[i] := v_need;
          v_head_since[i] := p_now;
          v_head_key[i] := v_keys[n];
          v_slack[i] := NULL;
        END IF;
        IF v_head[i] = v_tasks[n] THEN v_blocked[i] := true; END IF;
      ELSIF v_head[i] <> v_tasks[n] AND v_keys[n] >= v_head_key[i] AND v_need > v_slack[i] THEN
        -- It would delay the one that has waited for nearly a window.
        v_fits := false;
      END IF;
    END LOOP;
    CONTINUE WHEN NOT v_fits;

    v_taken := v_taken || n;
    v_agent_room[a] := v_agent_room[a] - 1;
    FOR k IN 1 .. 4 LOOP
      i := v_of[a][k];
      EXIT WHEN i IS NULL;
      v_room[i] := v_room[i] - 1;
      v_need := least(v_needs[n], v_token_limit[i]);
      v_token_room[i] := v_token_room[i] - v_need;
      v_slack[i] := v_slack[i] - v_need;
      IF v_head[i] = v_tasks[n] THEN
        v_head[i] := NULL;
        v_slack[i] := NULL;
      END IF;
    END LOOP;

    -- The tasks behind the same serial key come with it. Who changes the key meanwhile keeps it for himself.
    IF v_batches[a] AND v_places[n] IS NOT NULL AND cardinality(v_taken) < p_limit THEN
      SELECT t.serial_key INTO v_serial_key FROM runplane.tasks t
       WHERE t.id = v_tasks[n] AND t.serial_key IS NOT NULL
         AND pg_try_advisory_xact_lock(runplane.serial_key_hash(t.agent_id, t.serial_key));
      IF FOUND THEN
        SELECT array_agg(b.id ORDER BY b.rank) AS tasks, array_agg(b.run_id ORDER BY b.rank) AS runs,
               array_agg(y.expected ORDER BY b.rank) AS expected, array_agg(y.need ORDER BY b.rank) AS needs, count(*)::integer AS count
          INTO v_behind
          FROM (SELECT t.id, t.run_id, s.rank
                  FROM runplane.tasks h
                  JOIN runplane.serial_tasks s ON s.agent_id = h.agent_id AND s.serial_key = h.serial_key
                  JOIN runplane.tasks t ON t.id = s.task_id
                 WHERE h.id = v_tasks[n] AND s.task_id <> h.id AND t.cancel_requested_at IS NULL
                   AND NOT EXISTS (SELECT FROM runplane.leases l WHERE l.task_id = t.id OFFSET 0)
                   AND NOT EXISTS (SELECT FROM runplane.delayed_tasks d WHERE d.available_at = t.available_at AND d.task_id = t.id)
                 ORDER BY s.rank LIMIT p_limit - cardinality(v_taken)) b
          CROSS JOIN LATERAL runplane.tokens_of_task(b.id) y;
        IF v_behind.count > 0 THEN
          v_tasks := v_tasks[:n] || v_behind.tasks || v_tasks[n + 1:];
          v_runs := v_runs[:n] || v_behind.runs || v_runs[n + 1:];
          v_expected := v_expected[:n] || v_behind.expected || v_expected[n + 1:];
          v_places := v_places[:n] || array_fill(NULL::tid, ARRAY[v_behind.count]) || v_places[n + 1:];
          v_agents := v_agents[:n] || array_fill(a, ARRAY[v_behind.count]) || v_agents[n + 1:];
          v_keys := v_keys[:n] || array_fill(v_keys[n], ARRAY[v_behind.count]) || v_keys[n + 1:];
          v_needs := v_needs[:n] || v_behind.needs || v_needs[n + 1:];
        END IF;
      END IF;
    END IF;
  END LOOP;

  IF v_budgeted THEN
    PERFORM runplane.hold_heads(v_throttles, v_head, v_head_tokens, v_head_since, v_blocked, p_now);
  END IF;
  SELECT array_agg(v_tasks[t]), array_agg(v_runs[t]), array_agg(v_places[t]), array_agg(v_expected[t]) INTO tasks, runs, places, tokens
    FROM unnest(v_taken) t;
END
$$;
--> statement-breakpoint
-- Claims up to cardinality(p_attempt_ids) tasks of the given agents, best first, never above a limit. With a pool its
-- weights choose between queues, and a pull worker gets no more than the pool's slots.
--
-- READ COMMITTED gives each statement its own snapshot, taken before it waits for any lock. Counting and claiming in
-- one statement would therefore count leases as they were before the lock. So: lock in a statement of its own, count
-- in the next, claim in the one after. Each statement of this function gets a new snapshot because it is VOLATILE.
--
-- Locks are taken in the order agents, throttles, runs, ready rows. Claimers skip what another claimer holds and take
-- other agents instead; only when nothing else is left do they wait for it.
CREATE FUNCTION runplane.claim_tasks(
  p_agents uuid[], p_attempt_ids uuid[], p_worker uuid, p_claim_key text, p_lease_seconds integer, p_pool uuid
) RETURNS SETOF runplane.assignments
LANGUAGE plpgsql VOLATILE
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_now timestamptz;
  v_limit integer := cardinality(p_attempt_ids);
  -- Slots of the pool that a pull worker has taken.
  v_busy integer;
  v_agents uuid[];
  v_throttles uuid[];
  v_throttle uuid;
  -- Some agents are left out.
  v_is_partial boolean := false;
  v_startable uuid[];
  v_attempts uuid[];
  -- The tasks that are claimed: those that were ready with their places, and those behind the same serial keys.
  v_tasks uuid[];
  v_runs uuid[];
  v_places tid[];
  v_tokens bigint[];
  v_budgeted boolean;
BEGIN
  IF p_claim_key <> '' THEN
    PERFORM pg_advisory_xact_lock(hashtextextended(p_worker::text || p_claim_key, 0));
    RETURN QUERY SELECT a.* FROM runplane.assignments a
      WHERE a.worker_id = p_worker AND a.claim_key = p_claim_key ORDER BY a.claim_seq;
    IF FOUND THEN RETURN; END IF;
  END IF;

  -- A server counts the slots of what it runs itself; those of a pull worker are counted here, one claim after another.
  IF p_claim_key IS NOT NULL AND p_pool IS NOT NULL THEN
    PERFORM pg_advisory_xact_lock(hashtextextended(p_worker::text || p_pool::text, 2));
    SELECT count(*) INTO v_busy FROM runplane.leases l WHERE l.worker_id = p_worker AND l.claim_key IS NOT NULL AND l.pool_id = p_pool;
    v_limit := least(v_limit, (SELECT o.slots_per_replica - v_busy FROM runplane.pools o WHERE o.id = p_pool));
    IF v_limit <= 0 THEN RETURN; END IF;
  END IF;

  -- Agents that have work and may run it.
  SELECT array_agg(x.id) INTO v_agents FROM (
    SELECT a.id FROM runplane.agents a JOIN runplane.queues q ON q.id = a.queue_id
     WHERE a.id = ANY (p_agents) AND NOT a.paused AND NOT q.paused AND EXISTS (SELECT FROM runplane.ready_head(a.id))
     ORDER BY a.id FOR NO KEY UPDATE OF a SKIP LOCKED) x;
  IF v_agents IS NULL THEN
    SELECT array_agg(x.id) INTO v_agents FROM (
      SELECT a.id FROM runplane.agents a JOIN runplane.queues q ON q.id = a.queue_id
       WHERE a.id = ANY (p_agents) AND NOT a.paused AND NOT q.paused AND EXISTS (SELECT FROM runplane.ready_head(a.id))
       ORDER BY a.id FOR NO KEY UPDATE OF a) x;
    IF v_agents IS NULL THEN RETURN; END IF;
  END IF;

  -- All throttles of an agent or none: an agent one of whose throttles is being claimed elsewhere is left out, unless
  -- nobody else is left. One after another: who waits for one holds none that comes after it, so nobody waits in a circle.
  SELECT array_agg(DISTINCT x.throttle_id) INTO v_throttles FROM runplane.agent_throttles x WHERE x.agent_id = ANY (v_agents);
  FOREACH v_throttle IN ARRAY coalesce(v_throttles, '{}') LOOP
    IF v_is_partial THEN
      CONTINUE WHEN NOT EXISTS (SELECT FROM runplane.agent_throttles x WHERE x.throttle_id = v_throttle AND x.agent_id = ANY (v_agents));
    END IF;
    PERFORM FROM runplane.throttles t WHERE t.id = v_throttle FOR NO KEY UPDATE SKIP LOCKED;
    CONTINUE WHEN FOUND;
    SELECT array_agg(a) INTO v_startable FROM unnest(v_agents) a
     WHERE NOT EXISTS (SELECT FROM runplane.agent_throttles x WHERE x.throttle_id = v_throttle AND x.agent_id = a);
    IF v_startable IS NULL THEN
      PERFORM FROM runplane.throttles t WHERE t.id = v_throttle FOR NO KEY UPDATE;
    ELSE
      v_agents := v_startable;
      v_is_partial := true;
    END IF;
  END LOOP;
  IF v_is_partial THEN
    SELECT array_agg(DISTINCT x.throttle_id) INTO v_throttles FROM runplane.agent_throttles x WHERE x.agent_id = ANY (v_agents);
  END IF;

  -- Who gives the pool fewer slots locks its agents too, and may have done so while this claim waited for them.
  IF v_busy IS NOT NULL THEN
    v_limit := least(v_limit, (SELECT o.slots_per_replica - v_busy FROM runplane.pools o WHERE o.id = p_pool));
    IF v_limit <= 0 THEN RETURN; END IF;
  END IF;

  -- Before this claim writes what its lanes are at, which nobody else sees yet.
  v_now := runplane.clock();
  PERFORM runplane.advance_scans(v_agents, v_now);

  SELECT p.tasks, p.runs, p.places, p.tokens, array_remove(p.tokens, NULL) <> '{}' INTO v_tasks, v_runs, v_places, v_tokens, v_budgeted
    FROM runplane.pick_tasks(v_agents, v_throttles, v_limit, p_pool, v_now) p;
  IF v_tasks IS NULL THEN RETURN; END IF;

  -- Leases begin after the count of what else runs: whoever compares times sees no more at once than was counted.
  v_now := runplane.clock();

  -- A run's first claim starts it. Runs come before tasks in the lock order; one that a cancel holds is left alone.
  SELECT coalesce(array_agg(x.id), '{}') INTO v_startable FROM (
    SELECT r.id FROM runplane.runs r WHERE r.id = ANY (v_runs) AND r.status = 'QUEUED' ORDER BY r.id FOR NO KEY UPDATE SKIP LOCKED) x;

  -- Mostly every task is the first of its run. Where not, the tasks of a run that is still queued are left out.
  IF cardinality(v_startable) < cardinality(v_runs) THEN
    SELECT array_agg(c.task_id), array_agg(c.place), array_agg(c.tokens) INTO v_tasks, v_places, v_tokens
      FROM unnest(v_tasks, v_runs, v_places, v_tokens) c(task_id, run_id, place, tokens) JOIN runplane.runs u ON u.id = c.run_id
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
  -- Those that come with the first of their key have no place but the one behind it, which they keep. They stay behind
  -- where somebody moved the first one meanwhile, or where one before them waits on: its run is held, or it has no room.
  -- OFFSET 0: a lease is looked up, since a join could go through all of them.
  keys AS MATERIALIZED (
    SELECT g.priority_key, g.turn, g.rank, k.agent_id, k.serial_key FROM gone g CROSS JOIN LATERAL (
      SELECT x.agent_id, x.serial_key FROM runplane.serial_tasks x WHERE x.task_id = g.task_id OFFSET 0) k),
  taken AS (
    SELECT g.agent_id, g.priority_key, g.turn, g.rank AS first_rank, g.rank, g.task_id, g.run_id, g.sequence, g.attempts FROM gone g
    UNION ALL
    SELECT s.agent_id, f.priority_key, f.turn, f.rank, s.rank, s.task_id, s.run_id, s.sequence, s.attempts
      FROM unnest(v_places, v_tasks) c(place, task_id)
      CROSS JOIN LATERAL (SELECT x.* FROM runplane.serial_tasks x WHERE x.task_id = c.task_id OFFSET 0) s
      JOIN keys f ON f.agent_id = s.agent_id AND f.serial_key = s.serial_key
     WHERE c.place IS NULL
       AND NOT EXISTS (
         SELECT FROM (
           SELECT x.task_id FROM runplane.serial_tasks x
            WHERE x.agent_id = s.agent_id AND x.serial_key = s.serial_key AND x.rank < s.rank ORDER BY x.rank OFFSET 0) b
          JOIN runplane.tasks u ON u.id = b.task_id
          WHERE b.task_id <> ALL (v_tasks)
            AND NOT EXISTS (SELECT FROM runplane.leases l WHERE l.task_id = b.task_id OFFSET 0)
            AND NOT EXISTS (SELECT FROM runplane.delayed_tasks d WHERE d.available_at = u.available_at AND d.task_id = b.task_id OFFSET 0) OFFSET 0)),
  -- Those of a key stay together and in its order, whatever their own priorities.
  numbered AS (
    SELECT g.*, row_number() OVER (ORDER BY g.priority_key, g.turn, g.first_rank, g.rank) AS n FROM taken g),
  leased AS (
    INSERT INTO runplane.leases (attempt_id, task_id, run_id, agent_id, claim_seq, number, sequence, worker_id, claim_key, pool_id,
                                 estimated_tokens, lease_seconds, started_at, expires_at, timeout_at)
    SELECT p_attempt_ids[n.n], n.task_id, n.run_id, n.agent_id, nextval('runplane.claim_order'), n.attempts + 1, n.sequence + 1,
           p_worker, p_claim_key, p_pool, CASE WHEN v_budgeted THEN v_tokens[array_position(v_tasks, n.task_id)] END,
           s.seconds, v_now, v_now + make_interval(secs => s.seconds), v_now + make_interval(secs => a.timeout_seconds)
      FROM numbered n JOIN runplane.agents a ON a.id = n.agent_id
      CROSS JOIN LATERAL (SELECT coalesce(p_lease_seconds, a.lease_seconds) AS seconds) s
     ORDER BY n.n
    RETURNING attempt_id, agent_id, task_id, run_id, number, sequence),
  asked AS (
    INSERT INTO runplane.throttle_use (throttle_id, at, tokens, requests)
    SELECT x.throttle_id, v_now, 0, count(*)
      FROM leased l JOIN runplane.agent_throttles x ON x.agent_id = l.agent_id JOIN runplane.throttles t ON t.id = x.throttle_id
     WHERE v_throttles IS NOT NULL AND coalesce(t.max_requests_per_minute, t.max_requests_per_second) IS NOT NULL
     GROUP BY x.throttle_id),
  advanced AS (
    INSERT INTO runplane.lane_turns AS l (queue_id, priority, turn, at)
    SELECT g.queue_id, g.priority, g.turn, v_now FROM (
      SELECT a.queue_id, -g.priority_key AS priority, max(g.turn) AS turn
        FROM gone g JOIN runplane.agents a ON a.id = g.agent_id GROUP BY 1, 2 ORDER BY 1, 2) g
      LEFT JOIN runplane.lane_turns k ON k.queue_id = g.queue_id AND k.priority = g.priority
     WHERE k.at IS NULL OR k.turn < g.turn AND k.at < v_now - interval '1 s'
    ON CONFLICT (queue_id, priority) DO UPDATE SET turn = greatest(l.turn, excluded.turn), at = excluded.at),
  started AS (
    UPDATE runplane.runs r SET status = 'RUNNING', started_at = v_now, sequence = r.sequence + 1
     WHERE r.id = ANY (CASE WHEN v_startable = '{}' THEN v_startable ELSE ARRAY(SELECT g.run_id FROM taken g) END) AND r.status = 'QUEUED'
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
