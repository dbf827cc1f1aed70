import { sql } from 'drizzle-orm';
import { check, integer, jsonb, primaryKey, text } from 'drizzle-orm/pg-core';
import { at, bytea, id, runplane } from './types.ts';

/** Processes that execute tasks: server replicas and pull workers. The name is given by the process, fresh at each start. */
export const workers = runplane.table(
  'workers',
  {
    id: id().primaryKey(),
    workerKey: text('worker_key').notNull().unique(),
    name: text('name').notNull(),
    client: text('client'),
    slots: integer('slots'),
    startedAt: at('started_at').notNull().default(sql`runplane.clock()`),
    /** Of a claim or a heartbeat, to some 10 seconds. */
    lastSeenAt: at('last_seen_at').notNull().default(sql`runplane.clock()`),
    /** It said goodbye; null while it is at work, or when it vanished. */
    leftAt: at('left_at'),
  },
  (t) => [check('workers_slots', sql`${t.slots} >= 0`)],
);

/**
 * What workers ask for. A process may have several loops that claim, each for agents or a pool of its own, and by several
 * replicas: what one asks for takes nothing away from the others. Which asks stand: src/db/worker-asks.ts.
 */
export const workerAsks = runplane.table(
  'worker_asks',
  {
    workerId: id('worker_id').notNull(),
    /** Digest of what it asks for. */
    key: bytea('key').notNull(),
    /** Null: the agents without a pool. */
    poolId: id('pool_id'),
    /** Null: all agents that are dispatched to workers and that the pool serves. */
    agentIds: id('agent_ids').array(),
    /** When it did last, to some 10 seconds. */
    askedAt: at('asked_at').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.workerId, t.key] }),
    check('worker_asks_something', sql`coalesce(${t.poolId}::text, ${t.agentIds}::text) is not null`),
  ],
);

/**
 * Duties that one replica at a time does for all. A replica holds one by a row and not by a lock, because a duty goes
 * over many transactions; when it vanishes, another goes on where it stopped.
 */
export const duties = runplane.table('duties', {
  name: text('name').primaryKey(),
  /** The process that does it now; null between two rounds. */
  holder: id('holder'),
  heldUntil: at('held_until'),
  /** When the next round is due. */
  dueAt: at('due_at').notNull().default(sql`runplane.clock()`),
  /** How far the round is; null before its first piece. */
  position: jsonb('position'),
});

/** Who changed what: written in the transaction of the change, never updated. */
export const auditEntries = runplane.table(
  'audit_entries',
  {
    id: id().primaryKey(),
    at: at('at').notNull().default(sql`runplane.clock()`),
    actor: text('actor').notNull(),
    action: text('action').notNull(),
    target: text('target').notNull(),
    before: jsonb('before'),
    after: jsonb('after'),
    reason: text('reason'),
    requestId: text('request_id'),
  },
  (t) => [check('audit_entries_words', sql`${t.actor} <> '' and ${t.action} <> '' and ${t.target} <> ''`)],
);

/** Credentials of clients; only the hash of the secret part is stored. */
export const apiTokens = runplane.table(
  'api_tokens',
  {
    id: id().primaryKey(),
    name: text('name').notNull(),
    secretHash: bytea('secret_hash').notNull(),
    scopes: text('scopes').array().notNull(),
    agents: text('agents').array(),
    jobs: text('jobs').array(),
    topics: text('topics').array(),
    createdAt: at('created_at').notNull().default(sql`runplane.clock()`),
    expiresAt: at('expires_at'),
    lastUsedAt: at('last_used_at'),
    revokedAt: at('revoked_at'),
  },
  (t) => [check('api_tokens_name', sql`btrim(${t.name}) <> ''`)],
);

/** Sessions of the page. Each stands for a credential and ends with it; only the hash of the secret part is stored. */
export const sessions = runplane.table('sessions', {
  id: id().primaryKey(),
  secretHash: bytea('secret_hash').notNull(),
  /** What it stands for, as src/credentials/sessions.ts writes it. */
  holder: jsonb('holder').notNull(),
  createdAt: at('created_at').notNull().default(sql`runplane.clock()`),
  expiresAt: at('expires_at').notNull(),
});
