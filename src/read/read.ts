import type { Database } from '../db/pool.ts';
import { AgentQuestions } from './agents.ts';
import { ApiTokenQuestions } from './api-tokens.ts';
import { AssetQuestions } from './assets.ts';
import { AttemptEventQuestions } from './attempt-events.ts';
import { AttemptQuestions } from './attempts.ts';
import { AuditQuestions } from './audit.ts';
import { CountQuestions } from './counts.ts';
import { DeadLetterQuestions } from './dead-letters.ts';
import { EventQuestions } from './events.ts';
import { IngestQuestions } from './ingest.ts';
import { JobQuestions } from './jobs.ts';
import { KnowledgeQuestions } from './knowledge.ts';
import { MaterializationQuestions } from './materializations.ts';
import { PoolQuestions, QueueQuestions } from './queues.ts';
import { RouteQuestions } from './routes.ts';
import { RunQuestions } from './runs.ts';
import { readClock } from './server.ts';
import { TaskQuestions } from './tasks.ts';
import { ThrottleQuestions } from './throttles.ts';
import { TotalQuestions } from './totals.ts';
import { WaitingQuestions } from './waiting.ts';
import { WorkerQuestions } from './workers.ts';

/** Every question of clients and the page. Nothing here writes. */
export const createRead = (db: Database) => ({
  now: () => readClock(db),
  runs: new RunQuestions(db),
  tasks: new TaskQuestions(db),
  attempts: new AttemptQuestions(db),
  attemptEvents: new AttemptEventQuestions(db),
  waiting: new WaitingQuestions(db),
  totals: new TotalQuestions(db),
  counts: new CountQuestions(db),
  events: new EventQuestions(db),
  ingest: new IngestQuestions(db),
  jobs: new JobQuestions(db),
  agents: new AgentQuestions(db),
  throttles: new ThrottleQuestions(db),
  routes: new RouteQuestions(db),
  queues: new QueueQuestions(db),
  pools: new PoolQuestions(db),
  workers: new WorkerQuestions(db),
  deadLetters: new DeadLetterQuestions(db),
  assets: new AssetQuestions(db),
  knowledge: new KnowledgeQuestions(db),
  materializations: new MaterializationQuestions(db),
  audit: new AuditQuestions(db),
  apiTokens: new ApiTokenQuestions(db),
});

export type Read = ReturnType<typeof createRead>;
