import { expect } from 'vitest';
import type { SignalTimes } from '../../src/changelog/signal.ts';
import type { AuthenticationOptions } from '../../src/credentials/credentials.ts';
import type { InlineHandler } from '../../src/dispatch/handlers.ts';
import type { Assignment } from '../../src/dispatch/types.ts';
import { newUuid, toPublicId } from '../../src/domain/ids.ts';
import { leaseToken } from '../../src/domain/lease-token.ts';
import type { JobStepInput, RetryPolicyInput, SaveAgentInput } from '../../src/operator/types.ts';
import type { AttemptEventInput, ReportResultInput, ReportResultOutcome } from '../../src/result/types.ts';
import { type Log, type Services, startServices } from '../../src/services.ts';
import { connectionTo } from './connection.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { expectInvariants } from './invariants.ts';

export const quiet = {
  info: () => {},
  warn: () => {},
  error: (fields: object, message: string) => console.error(message, fields),
};
export const actor = { name: 'test', requestId: null };
const immediate: RetryPolicyInput = {
  backoff: 'FIXED',
  initialDelaySeconds: 0,
  maxDelaySeconds: 0,
  jitter: 0,
};

export interface ControlPlaneOptions {
  /** Default false: nothing moves but by the test's own calls. */
  scheduler?: boolean;
  /** Default 30. */
  cancelGraceSeconds?: number;
  handlers?: Record<string, InlineHandler>;
  database?: TestDatabase;
  /** Default: directly. */
  listenUrl?: string;
  signalTimes?: SignalTimes;
  /** Default: off. */
  authentication?: AuthenticationOptions;
  /** Default: what is no error is not written. */
  notices?: Pick<Log, 'info' | 'warn'>;
}

/** The services of a process on a database of its own, with short words for what tests do all the time. */
export class ControlPlane {
  readonly database: TestDatabase;
  readonly services: Services;
  readonly workerId = newUuid();

  private constructor(database: TestDatabase, services: Services) {
    this.database = database;
    this.services = services;
  }

  static async start(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
    const database = options.database ?? (await createTestDatabase());
    const services = await startServices({
      database: connectionTo(database.url),
      listenUrl: options.listenUrl ?? database.url,
      signalTimes: options.signalTimes,
      installation: database.installation,
      scheduler: options.scheduler ?? false,
      cancelGraceSeconds: options.cancelGraceSeconds ?? 30,
      housekeeping: null,
      authentication: options.authentication ?? null,
      handlers: new Map(Object.entries(options.handlers ?? {})),
      serverName: 'test',
      log: { ...quiet, ...options.notices },
    });
    return new ControlPlane(database, services);
  }

  async stop(): Promise<void> {
    await this.services.stop();
    await expectInvariants(this.database.db);
    await this.database.drop();
  }

  async rows<Row extends object>(text: string, values: unknown[] = []): Promise<Row[]> {
    return (await this.database.db.query<Row & Record<string, unknown>>({ text, values })).rows;
  }

  async agent(name: string, input: Partial<SaveAgentInput> = {}): Promise<void> {
    const saved = await this.services.configuration.saveAgent(
      { name, dispatch: { pull: {} }, retryPolicy: immediate, ...input },
      actor,
    );
    if (saved.kind !== 'SaveAgentSuccess') throw new Error(saved.message);
  }

  async job(name: string, steps: (string | JobStepInput)[], configSchema?: unknown): Promise<void> {
    const saved = await this.services.configuration.saveJob(
      {
        name,
        configSchema,
        steps: steps.map((step) => (typeof step === 'string' ? { name: step, agent: step } : step)),
      },
      actor,
    );
    if (saved.kind !== 'SaveJobSuccess') throw new Error(saved.message);
  }

  async launch(job: string, input: object = {}): Promise<string> {
    const [outcome] = await this.services.intake.launchRuns([{ job, ...input }]);
    if (outcome?.kind !== 'LaunchRunSuccess') throw new Error(JSON.stringify(outcome));
    return outcome.runId;
  }

  async claim(agents: string[], limit = 100, more: object = {}): Promise<Assignment[]> {
    const outcome = await this.services.dispatch.claimTasks({
      workerId: this.workerId,
      agents,
      limit,
      ...more,
    });
    if (outcome.kind !== 'ClaimTasksSuccess') throw new Error(JSON.stringify(outcome));
    return outcome.assignments;
  }

  async report(
    assignment: Pick<Assignment, 'attemptId'>,
    result: Omit<ReportResultInput, 'attemptId' | 'leaseToken'>,
  ): Promise<ReportResultOutcome> {
    const [outcome] = await this.services.results.reportResults([
      { ...this.credentials(assignment), ...result },
    ]);
    return outcome as ReportResultOutcome;
  }

  /** What an agent tells; answers the last sequence. */
  async tell(
    assignment: Pick<Assignment, 'attemptId'>,
    events: AttemptEventInput[],
    firstSequence?: number,
  ): Promise<number> {
    const lease = this.credentials(assignment);
    const outcome = await this.services.attemptEvents.append({ lease, events, firstSequence });
    if (outcome.kind !== 'AppendAttemptEventsSuccess') throw new Error(JSON.stringify(outcome));
    return outcome.lastSequence;
  }

  credentials({ attemptId }: Pick<Assignment, 'attemptId'>) {
    return {
      attemptId: toPublicId('att', attemptId),
      leaseToken: leaseToken(this.database.installation.secretKey, attemptId),
    };
  }

  /** What the sweeper would find now, of one attempt. */
  async sweep({ attemptId }: Pick<Assignment, 'attemptId'>) {
    return this.services.results.record({ attemptId, report: null });
  }

  async expire({ attemptId }: Pick<Assignment, 'attemptId'>): Promise<void> {
    await this.rows(
      `update runplane.leases set expires_at = runplane.clock() - interval '1 second' where attempt_id = $1`,
      [attemptId],
    );
  }

  /**
   * Until every transaction of the server, in whatever database, is newer than what is in the change log: a cursor then
   * repeats nothing of it.
   */
  async untilLogIsPast(): Promise<void> {
    const open = 'select id from runplane.change_log where xid >= pg_snapshot_xmin(pg_current_snapshot())';
    await expect.poll(() => this.rows(open), { timeout: 20_000 }).toEqual([]);
  }

  /** Until so many sessions wait for a lock that the test holds. */
  async untilBlocked(sessions: number): Promise<void> {
    const blocked = `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    await expect.poll(() => this.rows(blocked), { timeout: 10_000 }).toHaveLength(sessions);
  }

  async run(id: string): Promise<{ status: string; openTasks: number }> {
    const [run] = await this.rows<{ status: string; openTasks: number }>(
      `select status, open_tasks as "openTasks" from runplane.runs where id = $1`,
      [id],
    );
    if (!run) throw new Error(`no run ${id}`);
    return run;
  }

  async steps(runId: string): Promise<Record<string, string>> {
    const rows = await this.rows<{ step: string; status: string }>(
      `select step, case when state <> 'OPEN' then state::text when exists (select from runplane.leases l where l.task_id = t.id)
         then 'PROCESSING' else 'ENQUEUED' end as status from runplane.tasks t where run_id = $1 order by id`,
      [runId],
    );
    return Object.fromEntries(rows.map(({ step, status }) => [step, status]));
  }
}
