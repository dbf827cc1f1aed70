import {
  type EventScope,
  type LoggedEvent,
  readEventsSince,
} from './changelog/attempt-events/read-events.sql.ts';
import { createChangeLog } from './changelog/change-log.ts';
import { HorizonWatch } from './changelog/horizon-watch.ts';
import { keysOfChange, keysOfEvent } from './changelog/interest.ts';
import { LogReader } from './changelog/log-reader.ts';
import { type ChangeScope, type LoggedChange, readSince } from './changelog/read-changes.sql.ts';
import { Signal, type SignalTimes } from './changelog/signal.ts';
import type { ChangeLog } from './changelog/types.ts';
import { type AuthenticationOptions, CredentialStore } from './credentials/credentials.ts';
import type { Duty } from './db/duty.ts';
import type { Installation } from './db/migrate.ts';
import { Database, type DatabaseOptions } from './db/pool.ts';
import type { InlineHandler } from './dispatch/handlers.ts';
import { Heartbeats } from './dispatch/heartbeats.ts';
import { InlineDispatch } from './dispatch/inline.ts';
import { createPullDispatch } from './dispatch/pull.ts';
import type { PullDispatch, WorkHintSource } from './dispatch/types.ts';
import { WorkHints } from './dispatch/work-hints.ts';
import { WorkerRegistry } from './dispatch/worker-registry.ts';
import { authenticationOff, type Credentials } from './domain/credential.ts';
import { failureWithStack } from './domain/failure.ts';
import type { WorkObserver } from './domain/work-observer.ts';
import { createRepair } from './housekeeping/repair/repair.ts';
import { createRetention, type RetentionDays } from './housekeeping/retention/retention.ts';
import { createIntake } from './intake/intake.ts';
import type { Intake } from './intake/types.ts';
import { createActions } from './operator/actions.ts';
import { type ApiTokens, createApiTokens } from './operator/api-tokens.ts';
import { createConfiguration } from './operator/configuration.ts';
import type { Actions, Configuration } from './operator/types.ts';
import { AttemptEventRecorder } from './result/attempt-events/attempt-events.ts';
import { ResultRecorder } from './result/results.ts';
import type { AttemptEvents } from './result/types.ts';
import { createEstimator } from './scheduler/estimator.ts';
import { createMover } from './scheduler/mover.ts';
import { ReadyWatch } from './scheduler/ready-watch.ts';
import { createSweeper } from './scheduler/sweeper.ts';

export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface ServicesOptions {
  database: Omit<DatabaseOptions, 'onError' | 'applicationName'>;
  /** A direct connection, for LISTEN. */
  listenUrl: string;
  signalTimes?: SignalTimes;
  installation: Installation;
  /** Runs claims for inline agents, the sweeper and the mover in this process. */
  scheduler: boolean;
  /** That a worker has to report after a cancel; then its lease is taken. */
  cancelGraceSeconds: number;
  /** With the scheduler: repairs what does not fit together, and deletes what is too old. Null: neither. */
  housekeeping: { thresholdSeconds: number; retentionDays: RetentionDays } | null;
  handlers: ReadonlyMap<string, InlineHandler>;
  /** Null: whoever asks may do everything. */
  authentication: AuthenticationOptions | null;
  serverName: string;
  log: Log;
  /** Hears of work on its way. Default: nobody does. */
  observer?: WorkObserver | null;
}

/** All services of one process on one database. */
export interface Services {
  db: Database;
  signal: Signal;
  intake: Intake;
  dispatch: PullDispatch;
  workHints: WorkHintSource;
  results: ResultRecorder;
  attemptEvents: AttemptEvents;
  configuration: Configuration;
  actions: Actions;
  apiTokens: ApiTokens;
  credentials: Credentials;
  changeLog: ChangeLog;
  horizon: HorizonWatch;
  /** How much is kept for clients that are there, by what it is. */
  kept(): Record<string, number>;
  /** Claims nothing more and hands back what is not done; what clients ask is still answered. */
  drain(): Promise<void>;
  stop(): Promise<void>;
}

export async function startServices(options: ServicesOptions): Promise<Services> {
  const { installation, log, observer = null } = options;
  const onPoolError = (error: Error): void =>
    log.warn({ error: error.message }, 'a database connection was lost');
  const db = new Database({ ...options.database, applicationName: 'runplane', onError: onPoolError });
  // Heartbeats never queue behind other work: a lease must not be lost because the pool is busy.
  const heartbeatDb = new Database({
    ...options.database,
    maxConnections: 1,
    applicationName: 'runplane-heartbeats',
    onError: onPoolError,
  });
  const signal = new Signal({ connectionString: options.listenUrl, log, times: options.signalTimes });
  await signal.start();
  const onCommit = (): void => signal.changed();
  const onError = (error: unknown, duty: string, of: object = {}): void =>
    log.error({ error: failureWithStack(error), duty, ...of }, 'a background duty failed and is repeated');

  const reader = new LogReader<LoggedChange, ChangeScope>({
    db,
    readSince: (snapshot, scopes) => readSince(db, snapshot, scopes),
    keysOf: keysOfChange,
    onSignal: (listener) => signal.onChange(listener),
    onError: (error) => onError(error, 'change log reader'),
  });
  const eventReader = new LogReader<LoggedEvent, EventScope>({
    db,
    readSince: (snapshot, scopes) => readEventsSince(db, snapshot, scopes),
    keysOf: keysOfEvent,
    onSignal: (listener) => signal.onChange(listener, 'attemptEvents'),
    onError: (error) => onError(error, 'attempt event reader'),
  });
  const horizon = new HorizonWatch({ db, log, onError });
  horizon.start();
  const intake = createIntake({ db, installation, onCommit, observer });
  const results = new ResultRecorder({
    db,
    secretKey: installation.secretKey,
    onCommit,
    observer,
    log,
  });
  const attemptEvents = new AttemptEventRecorder({
    db,
    secretKey: installation.secretKey,
    onCommit: () => signal.changed('attemptEvents'),
  });
  const heartbeats = new Heartbeats(heartbeatDb);
  const workers = new WorkerRegistry(db);
  const ready = new ReadyWatch({ db, signal, onError });
  ready.start();
  const dispatch = createPullDispatch({
    db,
    ready,
    heartbeats,
    workers,
    secretKey: installation.secretKey,
    onCommit,
    observer,
  });
  const credentials =
    options.authentication &&
    new CredentialStore({
      db,
      ...options.authentication,
      onError: (error) => onError(error, 'last use of tokens'),
    });
  const workHints = new WorkHints({ db, ready, onError });
  workHints.start();
  const duties: Duty[] = [];
  let inline: InlineDispatch | null = null;
  if (options.scheduler) {
    const mover = createMover({ db, onMoved: onCommit, onError });
    duties.push(mover, createSweeper({ db, results, onError }), createEstimator({ db, onError }));
    // A launch for later or a retry may be due before the mover would look again.
    signal.onChange(() => mover.wake());
    inline = new InlineDispatch({
      db,
      signal,
      ready,
      results,
      attemptEvents,
      heartbeats,
      workers,
      handlers: options.handlers,
      serverName: options.serverName,
      onCommit,
      onError,
      observer,
    });
    if (options.housekeeping) {
      const { thresholdSeconds, retentionDays } = options.housekeeping;
      const repair = createRepair({
        db,
        thresholdSeconds,
        onRepaired: onCommit,
        onError,
        log,
        observer,
      });
      duties.push(repair, createRetention({ db, retentionDays, onError, log }));
    }
    for (const duty of duties) duty.start();
    inline.start();
  }

  const changeLog = createChangeLog({ db, reader, eventReader, epoch: installation.epoch });
  const drain = async (): Promise<void> => {
    dispatch.drain();
    changeLog.drain();
    await workHints.stop();
    await Promise.all(duties.map((duty) => duty.stop()));
    await inline?.stop();
    await ready.stop();
  };
  return {
    db,
    signal,
    intake,
    dispatch,
    workHints,
    results,
    attemptEvents,
    configuration: createConfiguration({ db, onCommit }),
    actions: createActions({
      db,
      onCommit,
      epoch: installation.epoch,
      observer,
      cancelGraceSeconds: options.cancelGraceSeconds,
    }),
    changeLog,
    horizon,
    kept: () => ({
      subscribers: reader.subscribers + eventReader.subscribers,
      longPolls: changeLog.longPolls + dispatch.longPolls,
      workStreams: workHints.streams,
      watchers: ready.watchers,
      listeners: signal.listeners,
    }),
    apiTokens: createApiTokens({ db, onRevoked: (id) => credentials?.forget(id) }),
    credentials: credentials ?? authenticationOff,
    drain,
    stop: async () => {
      await drain();
      await Promise.all([intake.drained(), results.drained(), attemptEvents.drained(), credentials?.stop()]);
      await horizon.stop();
      reader.stop();
      eventReader.stop();
      await signal.stop();
      await Promise.all([db.close(), heartbeatDb.close()]);
    },
  };
}
