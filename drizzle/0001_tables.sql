CREATE SCHEMA IF NOT EXISTS "runplane";
--> statement-breakpoint
CREATE TYPE "runplane"."attempt_status" AS ENUM('COMPLETED', 'FAILED', 'CANCELLED', 'LOST', 'RELEASED', 'TIMED_OUT');--> statement-breakpoint
CREATE TYPE "runplane"."delay_reason" AS ENUM('NOT_BEFORE', 'RETRY_BACKOFF');--> statement-breakpoint
CREATE TYPE "runplane"."dispatch_kind" AS ENUM('PULL', 'INLINE');--> statement-breakpoint
CREATE TYPE "runplane"."error_kind" AS ENUM('TRANSIENT', 'PERMANENT', 'INVALID_OUTPUT', 'RATE_LIMITED', 'PROVIDER_DOWN', 'QUOTA_EXHAUSTED');--> statement-breakpoint
CREATE TYPE "runplane"."event_source" AS ENUM('GRAPHQL', 'NATS');--> statement-breakpoint
CREATE TYPE "runplane"."logged_status" AS ENUM('BLOCKED', 'ENQUEUED', 'PROCESSING', 'QUEUED', 'RUNNING', 'CANCELLING', 'COMPLETED', 'FAILED', 'CANCELLED');--> statement-breakpoint
CREATE TYPE "runplane"."run_status" AS ENUM('QUEUED', 'RUNNING', 'CANCELLING', 'COMPLETED', 'FAILED', 'CANCELLED');--> statement-breakpoint
CREATE TYPE "runplane"."step_condition" AS ENUM('DEPENDENCIES_COMPLETED', 'DEPENDENCIES_FINISHED');--> statement-breakpoint
CREATE TYPE "runplane"."task_state" AS ENUM('BLOCKED', 'OPEN', 'COMPLETED', 'FAILED', 'CANCELLED');--> statement-breakpoint
CREATE TABLE "runplane"."attempt_event_counts" (
	"attempt_id" uuid PRIMARY KEY NOT NULL,
	"last_sequence" integer DEFAULT 0 NOT NULL,
	"bytes" bigint DEFAULT 0 NOT NULL,
	"sanitized" boolean DEFAULT false NOT NULL,
	CONSTRAINT "attempt_event_counts_range" CHECK ("runplane"."attempt_event_counts"."last_sequence" >= 0 and "runplane"."attempt_event_counts"."bytes" >= 0)
);
--> statement-breakpoint
CREATE TABLE "runplane"."attempt_events" (
	"run_id" uuid NOT NULL,
	"xid" "xid8" DEFAULT pg_current_xact_id() NOT NULL,
	"id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "runplane"."attempt_events_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"seen_before" "xid8" DEFAULT pg_snapshot_xmax(pg_current_snapshot()) NOT NULL,
	"task_id" uuid NOT NULL,
	"attempt_id" uuid NOT NULL,
	"sequence" integer NOT NULL,
	"type" text NOT NULL,
	"at" timestamp (3) with time zone NOT NULL,
	"data" jsonb,
	"bytes" integer NOT NULL,
	CONSTRAINT "attempt_events_run_id_xid_id_pk" PRIMARY KEY("run_id","xid","id"),
	CONSTRAINT "attempt_events_by_attempt" UNIQUE("attempt_id","sequence"),
	CONSTRAINT "attempt_events_sequence" CHECK ("runplane"."attempt_events"."sequence" >= 1)
);
--> statement-breakpoint
CREATE TABLE "runplane"."agent_throttles" (
	"agent_id" uuid NOT NULL,
	"throttle_id" uuid NOT NULL,
	CONSTRAINT "agent_throttles_agent_id_throttle_id_pk" PRIMARY KEY("agent_id","throttle_id")
);
--> statement-breakpoint
CREATE TABLE "runplane"."agents" (
	"id" uuid PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"description" text,
	"dispatch_kind" "runplane"."dispatch_kind" NOT NULL,
	"handler" text,
	"batch_by_serial_key" boolean DEFAULT false NOT NULL,
	"queue_id" uuid NOT NULL,
	"max_concurrent_tasks" integer,
	"retry_policy" jsonb NOT NULL,
	"lease_seconds" integer NOT NULL,
	"timeout_seconds" integer,
	"default_model" text,
	"compute_cost_per_hour" numeric(30, 12),
	"paused" boolean DEFAULT false NOT NULL,
	"version" integer DEFAULT 1 NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	"updated_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	CONSTRAINT "agents_name_unique" UNIQUE("name"),
	CONSTRAINT "agents_name" CHECK (btrim("runplane"."agents"."name") <> ''),
	CONSTRAINT "agents_handler" CHECK (("runplane"."agents"."dispatch_kind" = 'INLINE') = ("runplane"."agents"."handler" is not null)),
	CONSTRAINT "agents_batch" CHECK ("runplane"."agents"."dispatch_kind" = 'PULL' or not "runplane"."agents"."batch_by_serial_key"),
	CONSTRAINT "agents_limit" CHECK ("runplane"."agents"."max_concurrent_tasks" >= 0),
	CONSTRAINT "agents_lease" CHECK ("runplane"."agents"."lease_seconds" between 5 and 3600),
	CONSTRAINT "agents_timeout" CHECK ("runplane"."agents"."timeout_seconds" between 1 and 86400),
	CONSTRAINT "agents_compute_cost" CHECK ("runplane"."agents"."compute_cost_per_hour" >= 0)
);
--> statement-breakpoint
CREATE TABLE "runplane"."installation" (
	"id" smallint PRIMARY KEY DEFAULT 1 NOT NULL,
	"epoch" uuid NOT NULL,
	"secret_key" "bytea" NOT NULL,
	"log_deleted_xid" "xid8" DEFAULT '0' NOT NULL,
	"log_deleted_id" bigint DEFAULT 0 NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	CONSTRAINT "installation_is_one_row" CHECK ("runplane"."installation"."id" = 1)
);
--> statement-breakpoint
CREATE TABLE "runplane"."job_versions" (
	"job_id" uuid NOT NULL,
	"version" integer NOT NULL,
	"config_schema" jsonb,
	"steps" jsonb NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	CONSTRAINT "job_versions_job_id_version_pk" PRIMARY KEY("job_id","version"),
	CONSTRAINT "job_versions_steps" CHECK (jsonb_typeof("runplane"."job_versions"."steps") = 'array' and jsonb_array_length("runplane"."job_versions"."steps") between 1 and 100)
);
--> statement-breakpoint
CREATE TABLE "runplane"."jobs" (
	"id" uuid PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"description" text,
	"enabled" boolean DEFAULT true NOT NULL,
	"version" integer DEFAULT 1 NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	"updated_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	CONSTRAINT "jobs_name_unique" UNIQUE("name"),
	CONSTRAINT "jobs_name" CHECK (btrim("runplane"."jobs"."name") <> '')
);
--> statement-breakpoint
CREATE TABLE "runplane"."pools" (
	"id" uuid PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"slots_per_replica" smallint NOT NULL,
	"elastic" boolean DEFAULT false NOT NULL,
	"version" integer DEFAULT 1 NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	"updated_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	CONSTRAINT "pools_name_unique" UNIQUE("name"),
	CONSTRAINT "pools_name" CHECK (btrim("runplane"."pools"."name") <> ''),
	CONSTRAINT "pools_slots" CHECK ("runplane"."pools"."slots_per_replica" between 0 and 1000)
);
--> statement-breakpoint
CREATE TABLE "runplane"."queues" (
	"id" uuid PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"pool_id" uuid NOT NULL,
	"weight" smallint NOT NULL,
	"shared_weight" smallint DEFAULT 0 NOT NULL,
	"paused" boolean DEFAULT false NOT NULL,
	"version" integer DEFAULT 1 NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	"updated_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	CONSTRAINT "queues_name_unique" UNIQUE("name"),
	CONSTRAINT "queues_name" CHECK (btrim("runplane"."queues"."name") <> ''),
	CONSTRAINT "queues_weights" CHECK ("runplane"."queues"."weight" between 0 and 100 and "runplane"."queues"."shared_weight" between 0 and 100)
);
--> statement-breakpoint
CREATE TABLE "runplane"."routes" (
	"id" uuid PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"topic" text NOT NULL,
	"job_id" uuid NOT NULL,
	"config" jsonb,
	"customer" jsonb,
	"labels" jsonb,
	"serial_key" jsonb,
	"estimated_tokens" jsonb,
	"priority" smallint DEFAULT 0 NOT NULL,
	"enabled" boolean DEFAULT true NOT NULL,
	"version" integer DEFAULT 1 NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	"updated_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	CONSTRAINT "routes_name_unique" UNIQUE("name"),
	CONSTRAINT "routes_name" CHECK (btrim("runplane"."routes"."name") <> ''),
	CONSTRAINT "routes_priority" CHECK ("runplane"."routes"."priority" between -1000 and 1000)
);
--> statement-breakpoint
CREATE TABLE "runplane"."throttles" (
	"id" uuid PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"max_concurrent_tasks" integer,
	"max_tokens_per_minute" integer,
	"max_requests_per_minute" integer,
	"max_requests_per_second" integer,
	"not_before" timestamp (3) with time zone,
	"version" integer DEFAULT 1 NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	"updated_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	CONSTRAINT "throttles_name_unique" UNIQUE("name"),
	CONSTRAINT "throttles_name" CHECK (btrim("runplane"."throttles"."name") <> ''),
	CONSTRAINT "throttles_limits" CHECK (least("runplane"."throttles"."max_concurrent_tasks", "runplane"."throttles"."max_tokens_per_minute", "runplane"."throttles"."max_requests_per_minute", "runplane"."throttles"."max_requests_per_second") >= 0)
);
--> statement-breakpoint
CREATE TABLE "runplane"."ingest_incidents" (
	"id" uuid PRIMARY KEY NOT NULL,
	"stream" text NOT NULL,
	"consumer" text NOT NULL,
	"at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	"kind" text NOT NULL,
	"from_sequence" bigint,
	"to_sequence" bigint,
	"detail" text NOT NULL,
	"event_id" uuid,
	"resolved_at" timestamp (3) with time zone,
	CONSTRAINT "ingest_incidents_kind" CHECK ("runplane"."ingest_incidents"."kind" in ('GAP', 'POISON', 'MAX_DELIVER', 'CONFLICT', 'STREAM_MISSING', 'CONSUMER_MISSING', 'AGE_WARNING')),
	CONSTRAINT "ingest_incidents_range" CHECK ("runplane"."ingest_incidents"."from_sequence" <= "runplane"."ingest_incidents"."to_sequence")
);
--> statement-breakpoint
CREATE TABLE "runplane"."ingest_streams" (
	"stream" text NOT NULL,
	"consumer" text NOT NULL,
	"stream_created" text,
	"consumer_created" text,
	"handled" "int8multirange" DEFAULT '{}' NOT NULL,
	"delivered_sequence" bigint DEFAULT 0 NOT NULL,
	"subjects" text[] DEFAULT '{}' NOT NULL,
	"ack_wait_seconds" double precision NOT NULL,
	"max_deliver" integer NOT NULL,
	"max_age_seconds" double precision,
	"last_sequence" bigint,
	"pending" bigint,
	"unacknowledged" bigint,
	"redelivered" bigint,
	"oldest_pending_at" timestamp (3) with time zone,
	"seen_at" timestamp (3) with time zone,
	"watcher" uuid,
	"watched_until" timestamp (3) with time zone,
	CONSTRAINT "ingest_streams_stream_consumer_pk" PRIMARY KEY("stream","consumer")
);
--> statement-breakpoint
CREATE TABLE "runplane"."knowledge_chat_audit" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "runplane"."knowledge_chat_audit_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"message_key" text NOT NULL,
	"pipeline_id" text NOT NULL,
	"correlation_id" text,
	"idempotency_key" text,
	"model" text,
	"prompt" text,
	"response" text,
	"payload_json" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	CONSTRAINT "knowledge_chat_audit_message_key_unique" UNIQUE("message_key")
);
--> statement-breakpoint
CREATE TABLE "runplane"."knowledge_chat_pairs" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "runplane"."knowledge_chat_pairs_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"pair_id" text NOT NULL,
	"correlation_id" text,
	"pipeline_id" text NOT NULL,
	"llm_model" text,
	"prompt" text,
	"response" text,
	"prompt_tokens" integer,
	"completion_tokens" integer,
	"total_tokens" integer,
	"payload_json" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	CONSTRAINT "knowledge_chat_pairs_pair_id_unique" UNIQUE("pair_id")
);
--> statement-breakpoint
CREATE TABLE "runplane"."knowledge_events" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "runplane"."knowledge_events_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"event_id" text NOT NULL,
	"event_type" text NOT NULL,
	"correlation_id" text NOT NULL,
	"pipeline_id" text NOT NULL,
	"llm_model" text,
	"payload_json" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	CONSTRAINT "knowledge_events_event_id_unique" UNIQUE("event_id"),
	CONSTRAINT "knowledge_events_type" CHECK ("runplane"."knowledge_events"."event_type" in ('embedding', 'retrieve', 'compose'))
);
--> statement-breakpoint
CREATE TABLE "runplane"."api_tokens" (
	"id" uuid PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"secret_hash" "bytea" NOT NULL,
	"scopes" text[] NOT NULL,
	"agents" text[],
	"jobs" text[],
	"topics" text[],
	"created_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	"expires_at" timestamp (3) with time zone,
	"last_used_at" timestamp (3) with time zone,
	"revoked_at" timestamp (3) with time zone,
	CONSTRAINT "api_tokens_name" CHECK (btrim("runplane"."api_tokens"."name") <> '')
);
--> statement-breakpoint
CREATE TABLE "runplane"."audit_entries" (
	"id" uuid PRIMARY KEY NOT NULL,
	"at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	"actor" text NOT NULL,
	"action" text NOT NULL,
	"target" text NOT NULL,
	"before" jsonb,
	"after" jsonb,
	"reason" text,
	"request_id" text,
	CONSTRAINT "audit_entries_words" CHECK ("runplane"."audit_entries"."actor" <> '' and "runplane"."audit_entries"."action" <> '' and "runplane"."audit_entries"."target" <> '')
);
--> statement-breakpoint
CREATE TABLE "runplane"."duties" (
	"name" text PRIMARY KEY NOT NULL,
	"holder" uuid,
	"held_until" timestamp (3) with time zone,
	"due_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	"position" jsonb
);
--> statement-breakpoint
CREATE TABLE "runplane"."sessions" (
	"id" uuid PRIMARY KEY NOT NULL,
	"secret_hash" "bytea" NOT NULL,
	"holder" jsonb NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	"expires_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "runplane"."worker_asks" (
	"worker_id" uuid NOT NULL,
	"key" "bytea" NOT NULL,
	"pool_id" uuid,
	"agent_ids" uuid[],
	"asked_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "worker_asks_worker_id_key_pk" PRIMARY KEY("worker_id","key"),
	CONSTRAINT "worker_asks_something" CHECK (coalesce("runplane"."worker_asks"."pool_id"::text, "runplane"."worker_asks"."agent_ids"::text) is not null)
);
--> statement-breakpoint
CREATE TABLE "runplane"."workers" (
	"id" uuid PRIMARY KEY NOT NULL,
	"worker_key" text NOT NULL,
	"name" text NOT NULL,
	"client" text,
	"slots" integer,
	"started_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	"last_seen_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	"left_at" timestamp (3) with time zone,
	CONSTRAINT "workers_worker_key_unique" UNIQUE("worker_key"),
	CONSTRAINT "workers_slots" CHECK ("runplane"."workers"."slots" >= 0)
);
--> statement-breakpoint
CREATE TABLE "runplane"."customer_turns" (
	"agent_id" uuid NOT NULL,
	"priority" smallint NOT NULL,
	"customer" text NOT NULL,
	"turn" bigint NOT NULL,
	"given" integer NOT NULL,
	CONSTRAINT "customer_turns_agent_id_priority_customer_pk" PRIMARY KEY("agent_id","priority","customer")
);
--> statement-breakpoint
CREATE TABLE "runplane"."delayed_tasks" (
	"available_at" timestamp (3) with time zone NOT NULL,
	"task_id" uuid NOT NULL,
	"run_id" uuid NOT NULL,
	"agent_id" uuid NOT NULL,
	"sequence" integer NOT NULL,
	"attempts" integer NOT NULL,
	"reason" "runplane"."delay_reason" NOT NULL,
	"since" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "delayed_tasks_available_at_task_id_pk" PRIMARY KEY("available_at","task_id")
);
--> statement-breakpoint
CREATE TABLE "runplane"."lane_turns" (
	"queue_id" uuid NOT NULL,
	"priority" smallint NOT NULL,
	"turn" bigint NOT NULL,
	"at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "lane_turns_queue_id_priority_pk" PRIMARY KEY("queue_id","priority")
);
--> statement-breakpoint
CREATE TABLE "runplane"."leases" (
	"attempt_id" uuid PRIMARY KEY NOT NULL,
	"task_id" uuid NOT NULL,
	"run_id" uuid NOT NULL,
	"agent_id" uuid NOT NULL,
	"claim_seq" bigint NOT NULL,
	"number" integer NOT NULL,
	"sequence" integer NOT NULL,
	"worker_id" uuid NOT NULL,
	"claim_key" text,
	"pool_id" uuid,
	"estimated_tokens" bigint,
	"settled_tokens" bigint DEFAULT 0 NOT NULL,
	"lease_seconds" integer NOT NULL,
	"started_at" timestamp (3) with time zone NOT NULL,
	"expires_at" timestamp (3) with time zone NOT NULL,
	"timeout_at" timestamp (3) with time zone,
	"cancel_deadline" timestamp (3) with time zone,
	CONSTRAINT "leases_task_id_unique" UNIQUE("task_id")
);
--> statement-breakpoint
CREATE TABLE "runplane"."ready_tasks" (
	"agent_id" uuid NOT NULL,
	"priority_key" smallint NOT NULL,
	"turn" bigint NOT NULL,
	"rank" bigint NOT NULL,
	"task_id" uuid NOT NULL,
	"run_id" uuid NOT NULL,
	"sequence" integer NOT NULL,
	"attempts" integer NOT NULL,
	"ready_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "ready_tasks_agent_id_priority_key_turn_rank_pk" PRIMARY KEY("agent_id","priority_key","turn","rank")
);
--> statement-breakpoint
CREATE TABLE "runplane"."scan_starts" (
	"agent_id" uuid PRIMARY KEY NOT NULL,
	"lease_from" bigint NOT NULL,
	"priority_key" smallint,
	"turn" bigint,
	"rank" bigint,
	"next_priority_key" smallint,
	"next_turn" bigint,
	"next_xid" "xid8",
	"changed_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "runplane"."serial_tasks" (
	"agent_id" uuid NOT NULL,
	"serial_key" text NOT NULL,
	"rank" bigint NOT NULL,
	"task_id" uuid NOT NULL,
	"run_id" uuid NOT NULL,
	"sequence" integer NOT NULL,
	"attempts" integer NOT NULL,
	"since" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "serial_tasks_agent_id_serial_key_rank_pk" PRIMARY KEY("agent_id","serial_key","rank"),
	CONSTRAINT "serial_tasks_task_id_unique" UNIQUE("task_id")
);
--> statement-breakpoint
CREATE TABLE "runplane"."task_progress" (
	"task_id" uuid PRIMARY KEY NOT NULL,
	"progress" double precision,
	"checkpoint" jsonb,
	CONSTRAINT "task_progress_range" CHECK ("runplane"."task_progress"."progress" between 0 and 1)
);
--> statement-breakpoint
CREATE TABLE "runplane"."assets" (
	"id" uuid PRIMARY KEY NOT NULL,
	"key" text NOT NULL,
	"description" text,
	"created_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	CONSTRAINT "assets_key_unique" UNIQUE("key")
);
--> statement-breakpoint
CREATE TABLE "runplane"."attempts" (
	"id" uuid PRIMARY KEY NOT NULL,
	"task_id" uuid NOT NULL,
	"run_id" uuid NOT NULL,
	"number" integer NOT NULL,
	"status" "runplane"."attempt_status" NOT NULL,
	"counted" boolean NOT NULL,
	"worker_id" uuid NOT NULL,
	"external_run_id" text,
	"trace_id" text,
	"error_code" text,
	"error_kind" "runplane"."error_kind",
	"error_message" text,
	"late" boolean DEFAULT false NOT NULL,
	"sanitized" boolean DEFAULT false NOT NULL,
	"confidence" double precision,
	"result_digest" "bytea",
	"compute_cost" numeric(30, 12) DEFAULT '0' NOT NULL,
	"started_at" timestamp (3) with time zone NOT NULL,
	"finished_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "attempts_by_task" UNIQUE("task_id","number"),
	CONSTRAINT "attempts_number" CHECK ("runplane"."attempts"."number" >= 1),
	CONSTRAINT "attempts_compute_cost" CHECK ("runplane"."attempts"."compute_cost" >= 0)
);
--> statement-breakpoint
CREATE TABLE "runplane"."awaited_inputs" (
	"correlation_id" text NOT NULL,
	"asset_id" uuid NOT NULL,
	"materialization_id" uuid NOT NULL,
	CONSTRAINT "awaited_inputs_correlation_id_asset_id_materialization_id_pk" PRIMARY KEY("correlation_id","asset_id","materialization_id")
);
--> statement-breakpoint
CREATE TABLE "runplane"."dead_letters" (
	"id" uuid PRIMARY KEY NOT NULL,
	"task_id" uuid NOT NULL,
	"run_id" uuid NOT NULL,
	"agent_id" uuid NOT NULL,
	"scope" text NOT NULL,
	"scope_id" text,
	"error_code" text NOT NULL,
	"error_kind" "runplane"."error_kind" NOT NULL,
	"error_message" text,
	"fail_count" integer DEFAULT 1 NOT NULL,
	"failed_at" timestamp (3) with time zone NOT NULL,
	"replayed_at" timestamp (3) with time zone,
	CONSTRAINT "dead_letters_task_id_unique" UNIQUE("task_id"),
	CONSTRAINT "dead_letters_fail_count" CHECK ("runplane"."dead_letters"."fail_count" >= 1),
	CONSTRAINT "dead_letters_scope" CHECK ("runplane"."dead_letters"."scope" in ('knowledge_base', 'knowledge', 'tenant', 'unknown'))
);
--> statement-breakpoint
CREATE TABLE "runplane"."materialization_inputs" (
	"materialization_id" uuid NOT NULL,
	"input_id" uuid NOT NULL,
	CONSTRAINT "materialization_inputs_materialization_id_input_id_pk" PRIMARY KEY("materialization_id","input_id")
);
--> statement-breakpoint
CREATE TABLE "runplane"."materializations" (
	"id" uuid PRIMARY KEY NOT NULL,
	"asset_id" uuid NOT NULL,
	"partition" text,
	"run_id" uuid NOT NULL,
	"task_id" uuid NOT NULL,
	"attempt_id" uuid NOT NULL,
	"correlation_id" text NOT NULL,
	"metadata" jsonb,
	"at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "materializations_by_attempt" UNIQUE NULLS NOT DISTINCT("attempt_id","asset_id","partition")
);
--> statement-breakpoint
CREATE TABLE "runplane"."usage" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "runplane"."usage_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"attempt_id" uuid NOT NULL,
	"task_id" uuid NOT NULL,
	"run_id" uuid NOT NULL,
	"agent_id" uuid NOT NULL,
	"model" text,
	"provider" text,
	"response_id" text,
	"input_tokens" bigint,
	"cache_read_tokens" bigint,
	"cache_write_tokens" bigint,
	"cache_write_1h_tokens" bigint,
	"output_tokens" bigint,
	"reasoning_tokens" bigint,
	"requests" integer DEFAULT 1 NOT NULL,
	"llm_cost" numeric(30, 12),
	"raw" jsonb,
	"at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "usage_counts" CHECK (least("runplane"."usage"."input_tokens", "runplane"."usage"."cache_read_tokens", "runplane"."usage"."cache_write_tokens", "runplane"."usage"."cache_write_1h_tokens", "runplane"."usage"."output_tokens", "runplane"."usage"."reasoning_tokens", "runplane"."usage"."requests") >= 0),
	CONSTRAINT "usage_cost" CHECK ("runplane"."usage"."llm_cost" >= 0)
);
--> statement-breakpoint
CREATE TABLE "runplane"."agent_estimates" (
	"agent_id" uuid PRIMARY KEY NOT NULL,
	"tokens" bigint NOT NULL,
	"shortfall" double precision NOT NULL,
	"seconds" double precision NOT NULL
);
--> statement-breakpoint
CREATE TABLE "runplane"."settled_attempts" (
	"attempt_id" uuid PRIMARY KEY NOT NULL,
	"id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "runplane"."settled_attempts_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"agent_id" uuid NOT NULL,
	"tokens" bigint NOT NULL,
	"expected_tokens" bigint,
	"seconds" double precision NOT NULL
);
--> statement-breakpoint
CREATE TABLE "runplane"."throttle_heads" (
	"throttle_id" uuid PRIMARY KEY NOT NULL,
	"task_id" uuid NOT NULL,
	"tokens" bigint NOT NULL,
	"since" timestamp (3) with time zone NOT NULL,
	"seen_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "runplane"."throttle_use" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "runplane"."throttle_use_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"throttle_id" uuid NOT NULL,
	"at" timestamp (3) with time zone NOT NULL,
	"tokens" bigint NOT NULL,
	"requests" integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE "runplane"."run_steps" (
	"run_id" uuid NOT NULL,
	"step" text NOT NULL,
	"open" integer NOT NULL,
	"broken" integer NOT NULL,
	"joined" integer NOT NULL,
	CONSTRAINT "run_steps_run_id_step_pk" PRIMARY KEY("run_id","step"),
	CONSTRAINT "run_steps_counts" CHECK (least("runplane"."run_steps"."open", "runplane"."run_steps"."broken", "runplane"."run_steps"."joined") >= 0)
);
--> statement-breakpoint
CREATE TABLE "runplane"."step_waits" (
	"run_id" uuid NOT NULL,
	"waiting_step" text NOT NULL,
	"step" text NOT NULL,
	"task_id" uuid NOT NULL,
	CONSTRAINT "step_waits_run_id_waiting_step_step_task_id_pk" PRIMARY KEY("run_id","waiting_step","step","task_id")
);
--> statement-breakpoint
CREATE TABLE "runplane"."change_log" (
	"xid" "xid8" DEFAULT pg_current_xact_id() NOT NULL,
	"id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "runplane"."change_log_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"seen_before" "xid8" DEFAULT pg_snapshot_xmax(pg_current_snapshot()) NOT NULL,
	"run_id" uuid NOT NULL,
	"task_id" uuid,
	"sequence" integer NOT NULL,
	"from_status" "runplane"."logged_status",
	"to_status" "runplane"."logged_status" NOT NULL,
	"attempt_id" uuid,
	"attempt_number" integer,
	"error_code" text,
	"reason" text,
	"at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "change_log_xid_id_pk" PRIMARY KEY("xid","id")
);
--> statement-breakpoint
CREATE TABLE "runplane"."debounces" (
	"job_id" uuid NOT NULL,
	"debounce_key" text NOT NULL,
	"run_id" uuid NOT NULL,
	"collect" boolean NOT NULL,
	"first_launch_at" timestamp (3) with time zone NOT NULL,
	"starts_at" timestamp (3) with time zone NOT NULL,
	"position" "xid8" NOT NULL,
	CONSTRAINT "debounces_job_id_debounce_key_pk" PRIMARY KEY("job_id","debounce_key")
);
--> statement-breakpoint
CREATE TABLE "runplane"."events" (
	"id" uuid PRIMARY KEY NOT NULL,
	"topic" text NOT NULL,
	"idempotency_key" text,
	"correlation_id" text NOT NULL,
	"source" "runplane"."event_source" NOT NULL,
	"payload" jsonb,
	"customer" text,
	"labels" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"rejection" jsonb,
	"raw" "bytea",
	"refusals" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"launched_routes" text[] DEFAULT '{}' NOT NULL,
	"trace_context" "bytea",
	"received_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	CONSTRAINT "events_topic" CHECK ("runplane"."events"."topic" <> ''),
	CONSTRAINT "events_raw" CHECK ("runplane"."events"."raw" is null or "runplane"."events"."rejection" is not null and octet_length("runplane"."events"."raw") <= 65536)
);
--> statement-breakpoint
CREATE TABLE "runplane"."idempotency_records" (
	"kind" text NOT NULL,
	"scope" text DEFAULT '' NOT NULL,
	"key_hash" "bytea" NOT NULL,
	"digest" "bytea" NOT NULL,
	"object_id" uuid NOT NULL,
	"debounced" boolean DEFAULT false NOT NULL,
	"position" "xid8" DEFAULT pg_snapshot_xmin(pg_current_snapshot()) NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT runplane.clock() NOT NULL,
	CONSTRAINT "idempotency_records_kind_scope_key_hash_pk" PRIMARY KEY("kind","scope","key_hash")
);
--> statement-breakpoint
CREATE TABLE "runplane"."runs" (
	"id" uuid PRIMARY KEY NOT NULL,
	"job_id" uuid NOT NULL,
	"job_version" integer NOT NULL,
	"status" "runplane"."run_status" DEFAULT 'QUEUED' NOT NULL,
	"config" jsonb NOT NULL,
	"correlation_id" text NOT NULL,
	"idempotency_key" text,
	"serial_key" text,
	"debounce_key" text,
	"customer" text,
	"labels" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"priority" smallint NOT NULL,
	"event_id" uuid,
	"route" text,
	"parent_run_id" uuid,
	"open_tasks" integer NOT NULL,
	"blocked_tasks" integer NOT NULL,
	"total_tasks" integer NOT NULL,
	"has_spawned" boolean DEFAULT false NOT NULL,
	"failed_task_id" uuid,
	"sequence" integer DEFAULT 1 NOT NULL,
	"available_at" timestamp (3) with time zone NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"started_at" timestamp (3) with time zone,
	"cancel_requested_at" timestamp (3) with time zone,
	"finished_at" timestamp (3) with time zone,
	"events_deleted_xid" "xid8",
	"trace_context" "bytea",
	CONSTRAINT "runs_priority" CHECK ("runplane"."runs"."priority" between -1000 and 1000),
	CONSTRAINT "runs_tasks" CHECK ("runplane"."runs"."blocked_tasks" >= 0 and "runplane"."runs"."open_tasks" >= "runplane"."runs"."blocked_tasks" and "runplane"."runs"."total_tasks" >= "runplane"."runs"."open_tasks"),
	CONSTRAINT "runs_finished" CHECK (("runplane"."runs"."finished_at" is not null) = ("runplane"."runs"."status" in ('COMPLETED', 'FAILED', 'CANCELLED'))),
	CONSTRAINT "runs_terminal_has_no_open_task" CHECK ("runplane"."runs"."finished_at" is null or "runplane"."runs"."open_tasks" = 0)
);
--> statement-breakpoint
CREATE TABLE "runplane"."tasks" (
	"id" uuid PRIMARY KEY NOT NULL,
	"run_id" uuid NOT NULL,
	"step" text NOT NULL,
	"agent_id" uuid NOT NULL,
	"state" "runplane"."task_state" NOT NULL,
	"priority" smallint NOT NULL,
	"rank" bigint,
	"turn" bigint,
	"serial_key" text,
	"input" jsonb,
	"output" jsonb,
	"depends_on" text[],
	"runs_when" "runplane"."step_condition" DEFAULT 'DEPENDENCIES_COMPLETED' NOT NULL,
	"optional" boolean DEFAULT false NOT NULL,
	"cancellable" boolean DEFAULT true NOT NULL,
	"max_attempts" integer,
	"attempts_forgiven" integer DEFAULT 0 NOT NULL,
	"estimated_tokens" bigint,
	"confidence" double precision,
	"parent_task_id" uuid,
	"member_of" text[],
	"labels" jsonb,
	"sequence" integer DEFAULT 1 NOT NULL,
	"error_code" text,
	"error_kind" "runplane"."error_kind",
	"error_message" text,
	"available_at" timestamp (3) with time zone NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"cancel_requested_at" timestamp (3) with time zone,
	"finished_at" timestamp (3) with time zone,
	"taken_over_from" uuid,
	"deleted_at" timestamp (3) with time zone,
	CONSTRAINT "tasks_member_of" CHECK ("runplane"."tasks"."step" = any("runplane"."tasks"."member_of")),
	CONSTRAINT "tasks_priority" CHECK ("runplane"."tasks"."priority" between -1000 and 1000),
	CONSTRAINT "tasks_max_attempts" CHECK ("runplane"."tasks"."max_attempts" >= 1),
	CONSTRAINT "tasks_confidence" CHECK ("runplane"."tasks"."confidence" between 0 and 1),
	CONSTRAINT "tasks_finished" CHECK (("runplane"."tasks"."finished_at" is not null) = ("runplane"."tasks"."state" in ('COMPLETED', 'FAILED', 'CANCELLED'))),
	CONSTRAINT "tasks_failed_has_error" CHECK ("runplane"."tasks"."state" <> 'FAILED' or "runplane"."tasks"."error_code" is not null),
	CONSTRAINT "tasks_deleted_is_over" CHECK ("runplane"."tasks"."deleted_at" is null or "runplane"."tasks"."finished_at" is not null),
	CONSTRAINT "tasks_deleted_has_no_payload" CHECK ("runplane"."tasks"."deleted_at" is null or coalesce("runplane"."tasks"."input", "runplane"."tasks"."output") is null and "runplane"."tasks"."error_message" is null)
);
--> statement-breakpoint
ALTER TABLE "runplane"."agent_throttles" ADD CONSTRAINT "agent_throttles_agent_id_agents_id_fk" FOREIGN KEY ("agent_id") REFERENCES "runplane"."agents"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "runplane"."agent_throttles" ADD CONSTRAINT "agent_throttles_throttle_id_throttles_id_fk" FOREIGN KEY ("throttle_id") REFERENCES "runplane"."throttles"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "runplane"."agents" ADD CONSTRAINT "agents_queue_id_queues_id_fk" FOREIGN KEY ("queue_id") REFERENCES "runplane"."queues"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "runplane"."job_versions" ADD CONSTRAINT "job_versions_job_id_jobs_id_fk" FOREIGN KEY ("job_id") REFERENCES "runplane"."jobs"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "runplane"."queues" ADD CONSTRAINT "queues_pool_id_pools_id_fk" FOREIGN KEY ("pool_id") REFERENCES "runplane"."pools"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "runplane"."routes" ADD CONSTRAINT "routes_job_id_jobs_id_fk" FOREIGN KEY ("job_id") REFERENCES "runplane"."jobs"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "runplane"."awaited_inputs" ADD CONSTRAINT "awaited_inputs_materialization_id_materializations_id_fk" FOREIGN KEY ("materialization_id") REFERENCES "runplane"."materializations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "runplane"."materialization_inputs" ADD CONSTRAINT "materialization_inputs_materialization_id_materializations_id_fk" FOREIGN KEY ("materialization_id") REFERENCES "runplane"."materializations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "runplane"."materialization_inputs" ADD CONSTRAINT "materialization_inputs_input_id_materializations_id_fk" FOREIGN KEY ("input_id") REFERENCES "runplane"."materializations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "runplane"."materializations" ADD CONSTRAINT "materializations_asset_id_assets_id_fk" FOREIGN KEY ("asset_id") REFERENCES "runplane"."assets"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "attempt_events_by_task" ON "runplane"."attempt_events" USING btree ("task_id","xid","id") WHERE "runplane"."attempt_events"."task_id" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "agent_throttles_by_throttle" ON "runplane"."agent_throttles" USING btree ("throttle_id","agent_id");--> statement-breakpoint
CREATE INDEX "ingest_incidents_by_stream" ON "runplane"."ingest_incidents" USING btree ("stream","consumer","id");--> statement-breakpoint
CREATE INDEX "ingest_incidents_by_event" ON "runplane"."ingest_incidents" USING btree ("event_id") WHERE "runplane"."ingest_incidents"."event_id" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "ingest_incidents_lasting" ON "runplane"."ingest_incidents" USING btree ("stream","consumer","kind") WHERE "runplane"."ingest_incidents"."resolved_at" is null and "runplane"."ingest_incidents"."kind" in ('STREAM_MISSING', 'AGE_WARNING');--> statement-breakpoint
CREATE INDEX "knowledge_chat_audit_by_correlation" ON "runplane"."knowledge_chat_audit" USING btree ("correlation_id");--> statement-breakpoint
CREATE INDEX "knowledge_chat_pairs_by_correlation" ON "runplane"."knowledge_chat_pairs" USING btree ("correlation_id");--> statement-breakpoint
CREATE INDEX "knowledge_events_by_type" ON "runplane"."knowledge_events" USING btree ("event_type");--> statement-breakpoint
CREATE INDEX "knowledge_events_by_correlation" ON "runplane"."knowledge_events" USING btree ("correlation_id");--> statement-breakpoint
CREATE INDEX "knowledge_events_by_day" ON "runplane"."knowledge_events" USING btree (((created_at at time zone 'UTC')::date));--> statement-breakpoint
CREATE INDEX "leases_by_agent" ON "runplane"."leases" USING btree ("agent_id","claim_seq");--> statement-breakpoint
CREATE INDEX "leases_by_claim" ON "runplane"."leases" USING btree ("worker_id","claim_key") WHERE "runplane"."leases"."claim_key" is not null;--> statement-breakpoint
CREATE INDEX "awaited_inputs_by_materialization" ON "runplane"."awaited_inputs" USING btree ("materialization_id");--> statement-breakpoint
CREATE INDEX "materialization_inputs_by_input" ON "runplane"."materialization_inputs" USING btree ("input_id");--> statement-breakpoint
CREATE INDEX "materializations_by_correlation" ON "runplane"."materializations" USING btree ("correlation_id","asset_id","id") WHERE "runplane"."materializations"."correlation_id" is not null;--> statement-breakpoint
CREATE INDEX "materializations_by_task" ON "runplane"."materializations" USING btree ("task_id");--> statement-breakpoint
CREATE UNIQUE INDEX "usage_by_response" ON "runplane"."usage" USING btree ("response_id") WHERE "runplane"."usage"."response_id" is not null;--> statement-breakpoint
CREATE INDEX "usage_by_task" ON "runplane"."usage" USING btree ("task_id");--> statement-breakpoint
CREATE INDEX "usage_by_run" ON "runplane"."usage" USING btree ("run_id");--> statement-breakpoint
CREATE INDEX "settled_attempts_by_agent" ON "runplane"."settled_attempts" USING btree ("agent_id","id");--> statement-breakpoint
CREATE INDEX "throttle_use_by_time" ON "runplane"."throttle_use" USING btree ("throttle_id","at");--> statement-breakpoint
CREATE INDEX "step_waits_by_step" ON "runplane"."step_waits" USING btree ("run_id","step","task_id");--> statement-breakpoint
CREATE INDEX "debounces_by_start" ON "runplane"."debounces" USING btree ("starts_at");--> statement-breakpoint
CREATE INDEX "events_by_correlation" ON "runplane"."events" USING btree ("correlation_id");--> statement-breakpoint
CREATE INDEX "events_rejected" ON "runplane"."events" USING btree ("id") WHERE "runplane"."events"."rejection" is not null;--> statement-breakpoint
CREATE INDEX "idempotency_records_debounced" ON "runplane"."idempotency_records" USING btree ("object_id") WHERE "runplane"."idempotency_records"."debounced";--> statement-breakpoint
CREATE INDEX "runs_by_correlation" ON "runplane"."runs" USING btree ("correlation_id");--> statement-breakpoint
CREATE INDEX "runs_by_parent" ON "runplane"."runs" USING btree ("parent_run_id") WHERE "runplane"."runs"."parent_run_id" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "runs_by_event_and_route" ON "runplane"."runs" USING btree ("event_id","route") WHERE "runplane"."runs"."event_id" is not null;--> statement-breakpoint
CREATE INDEX "tasks_by_run" ON "runplane"."tasks" USING btree ("run_id","id") WHERE "runplane"."tasks"."run_id" is not null;--> statement-breakpoint
CREATE INDEX "tasks_by_parent" ON "runplane"."tasks" USING btree ("parent_task_id","id") WHERE "runplane"."tasks"."parent_task_id" is not null;