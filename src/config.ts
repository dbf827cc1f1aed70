import { errors } from './errors.ts';
import { type NatsConfig, readNats } from './nats-config.ts';
import type { Setting, SettingWithDefault } from './setting.ts';
import { isLoopback, type LogLevel, type Role, type SettingName, settings } from './settings.ts';
import { readTelemetry, type TelemetryConfig } from './telemetry-config.ts';
import { unknownVariables } from './unknown-variables.ts';

/** How this process runs: read once, at start, and never changed. */
export interface Config {
  readonly host: string;
  /** 0 is any free port. */
  readonly port: number;
  readonly roles: readonly Role[];
  /** Null: whoever reaches the server may do everything. */
  readonly authentication: {
    readonly adminToken: string | null;
    readonly external: {
      readonly issuer: string;
      readonly audience: string;
      readonly scopeClaim: string;
    } | null;
  } | null;
  /** What clients may do over HTTP. */
  readonly access: {
    /** Of other sites whose pages may use the API. */
    readonly origins: readonly string[];
    /** Of one token; 0 is no limit. */
    readonly requestsPerMinute: number;
    readonly streamsPerToken: number;
    /** Path of the list of the only documents that are executed; null: any is. */
    readonly trustedDocuments: string | null;
  };
  /** Null: the key in the database. */
  readonly secretKey: string | null;
  readonly logLevel: LogLevel;
  /** Of the embedded Postgres; of no meaning with a database URL. */
  readonly dataDir: string;
  readonly database: {
    /** Null: the embedded Postgres. */
    readonly url: string | null;
    /** A connection of its own for LISTEN and migrations; set when url is a pooler, where sessions are not ours. */
    readonly listenUrl: string | null;
    readonly connections: number;
    /** Milliseconds; 0 is none. */
    readonly timeouts: {
      readonly statement: number;
      readonly lock: number;
      readonly idleInTransaction: number;
    };
  };
  /** That a worker has to report after a cancel. */
  readonly cancelGraceSeconds: number;
  readonly housekeeping: {
    readonly on: boolean;
    readonly thresholdSeconds: number;
    /** Days that things are kept; 0 is for ever. */
    readonly retentionDays: {
      readonly runs: number;
      readonly events: number;
      readonly changeLog: number;
      readonly attemptEvents: number;
      readonly audit: number;
    };
  };
  /** Null: events come by GraphQL alone. */
  readonly nats: NatsConfig | null;
  /** Null: no spans are sent. */
  readonly telemetry: TelemetryConfig | null;
  /** Settings that are allowed and should be known of, as sentences. */
  readonly risks: readonly string[];
}

export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  readonly code = errors.CONFIGURATION_INVALID.code;
  /** Every fault, as a sentence. */
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.faults = faults;
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

interface Read {
  <T>(name: SettingName, setting: SettingWithDefault<T>): T;
  <T>(name: SettingName, setting: Setting<T>): T | null;
}

/** A wrong value is a fault and reads as the default, so that the rest is checked all the same. */
function readerOf(env: Environment, faults: string[]): Read {
  function read<T>(name: SettingName, setting: SettingWithDefault<T>): T;
  function read<T>(name: SettingName, setting: Setting<T>): T | null;
  function read<T>(name: SettingName, setting: Setting<T>): T | null {
    const given = valueOf(env, name);
    if (given !== null) {
      const value = setting.parse(given);
      if (value !== undefined) return value;
      faults.push(
        `${name} is ${setting.secret ? 'wrong' : JSON.stringify(given)}: it must be ${setting.values}.`,
      );
    }
    return setting.default === null ? null : (setting.parse(setting.default) ?? null);
  }
  return read;
}

/** What commands need that ask a server. */
export function readClientConfig(env: Environment = process.env): { url: string; token: string | null } {
  const faults: string[] = [];
  const read = readerOf(env, faults);
  const config = {
    url: read('RUNPLANE_URL', settings.RUNPLANE_URL),
    token: read('RUNPLANE_TOKEN', settings.RUNPLANE_TOKEN),
  };
  if (faults.length > 0) throw new ConfigurationError(faults);
  return config;
}

/** Reads and checks the environment as a whole; throws a ConfigurationError with every fault. */
export function readConfig(env: Environment = process.env): Config {
  const faults = unknownVariables(env);

  const read = readerOf(env, faults);
  const auth = read('RUNPLANE_AUTH', settings.RUNPLANE_AUTH);
  const adminToken = read('RUNPLANE_ADMIN_TOKEN', settings.RUNPLANE_ADMIN_TOKEN);
  const issuer = read('RUNPLANE_OIDC_ISSUER', settings.RUNPLANE_OIDC_ISSUER);
  const audience = read('RUNPLANE_OIDC_AUDIENCE', settings.RUNPLANE_OIDC_AUDIENCE);
  const scopeClaim = read('RUNPLANE_OIDC_SCOPE_CLAIM', settings.RUNPLANE_OIDC_SCOPE_CLAIM);
  const external =
    issuer === null || audience === null ? null : Object.freeze({ issuer, audience, scopeClaim });

  const config: Omit<Config, 'risks'> = {
    host: read('RUNPLANE_HOST', settings.RUNPLANE_HOST),
    port: read('RUNPLANE_PORT', settings.RUNPLANE_PORT),
    roles: Object.freeze(read('RUNPLANE_ROLES', settings.RUNPLANE_ROLES)),
    authentication: auth === 'off' ? null : Object.freeze({ adminToken, external }),
    access: Object.freeze({
      origins: Object.freeze(read('RUNPLANE_ALLOWED_ORIGINS', settings.RUNPLANE_ALLOWED_ORIGINS) ?? []),
      requestsPerMinute: read('RUNPLANE_REQUESTS_PER_MINUTE', settings.RUNPLANE_REQUESTS_PER_MINUTE),
      streamsPerToken: read('RUNPLANE_STREAMS_PER_TOKEN', settings.RUNPLANE_STREAMS_PER_TOKEN),
      trustedDocuments: read('RUNPLANE_TRUSTED_DOCUMENTS', settings.RUNPLANE_TRUSTED_DOCUMENTS),
    }),
    secretKey: read('RUNPLANE_SECRET_KEY', settings.RUNPLANE_SECRET_KEY),
    logLevel: read('LOG_LEVEL', settings.LOG_LEVEL),
    dataDir: read('RUNPLANE_DATA_DIR', settings.RUNPLANE_DATA_DIR),
    database: Object.freeze({
      url: read('DATABASE_URL', settings.DATABASE_URL),
      listenUrl: read('DATABASE_LISTEN_URL', settings.DATABASE_LISTEN_URL),
      connections: read('RUNPLANE_DB_CONNECTIONS', settings.RUNPLANE_DB_CONNECTIONS),
      timeouts: Object.freeze({
        statement: read('RUNPLANE_DB_STATEMENT_TIMEOUT_MS', settings.RUNPLANE_DB_STATEMENT_TIMEOUT_MS),
        lock: read('RUNPLANE_DB_LOCK_TIMEOUT_MS', settings.RUNPLANE_DB_LOCK_TIMEOUT_MS),
        idleInTransaction: read(
          'RUNPLANE_DB_IDLE_IN_TRANSACTION_TIMEOUT_MS',
          settings.RUNPLANE_DB_IDLE_IN_TRANSACTION_TIMEOUT_MS,
        ),
      }),
    }),
    cancelGraceSeconds: read('RUNPLANE_CANCEL_GRACE_SECONDS', settings.RUNPLANE_CANCEL_GRACE_SECONDS),
    housekeeping: Object.freeze({
      on: read('RUNPLANE_HOUSEKEEPING', settings.RUNPLANE_HOUSEKEEPING) === 'on',
      thresholdSeconds: read(
        'RUNPLANE_HOUSEKEEPING_THRESHOLD_SECONDS',
        settings.RUNPLANE_HOUSEKEEPING_THRESHOLD_SECONDS,
      ),
      retentionDays: Object.freeze({
        runs: read('RUNPLANE_RETENTION_RUNS_DAYS', settings.RUNPLANE_RETENTION_RUNS_DAYS),
        events: read('RUNPLANE_RETENTION_EVENTS_DAYS', settings.RUNPLANE_RETENTION_EVENTS_DAYS),
        changeLog: read('RUNPLANE_RETENTION_CHANGE_LOG_DAYS', settings.RUNPLANE_RETENTION_CHANGE_LOG_DAYS),
        attemptEvents: read(
          'RUNPLANE_RETENTION_ATTEMPT_EVENTS_DAYS',
          settings.RUNPLANE_RETENTION_ATTEMPT_EVENTS_DAYS,
        ),
        audit: read('RUNPLANE_RETENTION_AUDIT_DAYS', settings.RUNPLANE_RETENTION_AUDIT_DAYS),
      }),
    }),
    nats: readNats(read, faults),
    telemetry: readTelemetry(read, (name) => valueOf(env, name)),
  };
  if (auth === 'off') faults.push(...faultsWithoutAuthentication(config.host, env));
  if ((valueOf(env, 'RUNPLANE_OIDC_ISSUER') === null) !== (valueOf(env, 'RUNPLANE_OIDC_AUDIENCE') === null)) {
    faults.push('RUNPLANE_OIDC_ISSUER and RUNPLANE_OIDC_AUDIENCE belong together: set both, or neither.');
  }
  if (valueOf(env, 'DATABASE_LISTEN_URL') !== null && valueOf(env, 'DATABASE_URL') === null) {
    faults.push('DATABASE_LISTEN_URL is set, but DATABASE_URL is not; set both, or DATABASE_URL alone.');
  }
  if (faults.length > 0) throw new ConfigurationError(faults);
  return Object.freeze({ ...config, risks: Object.freeze(findRisks(config, env)) });
}

function faultsWithoutAuthentication(host: string, env: Environment): string[] {
  // Whoever sets a credential believes that it is asked for.
  const faults = (['RUNPLANE_ADMIN_TOKEN', 'RUNPLANE_OIDC_ISSUER'] as const)
    .filter((name) => valueOf(env, name) !== null)
    .map(
      (name) =>
        `${name} is set, but RUNPLANE_AUTH is off, so nobody is asked for a token: set RUNPLANE_AUTH to token.`,
    );
  if (!isLoopback(host)) {
    faults.push(
      `RUNPLANE_HOST is ${JSON.stringify(host)}, which others can reach, and RUNPLANE_AUTH is off, which would let them ` +
        'do everything. Set RUNPLANE_AUTH to token and RUNPLANE_ADMIN_TOKEN to a secret, or bind to loopback: leave RUNPLANE_HOST out.',
    );
  }
  return faults;
}

/** An empty variable counts as absent: compose files and shells often cannot leave one out. */
const valueOf = (env: Environment, name: SettingName): string | null => env[name]?.trim() || null;

function findRisks(config: Omit<Config, 'risks'>, env: Environment): string[] {
  const risks = config.authentication
    ? []
    : ['authentication is off: every program on this machine can do everything.'];
  if (env.NODE_TLS_REJECT_UNAUTHORIZED === '0') {
    risks.push('NODE_TLS_REJECT_UNAUTHORIZED is 0: no TLS connection checks whom it talks to.');
  }
  for (const name of ['url', 'listenUrl'] as const) {
    const url = config.database[name];
    if (url !== null && !verifiesServer(new URL(url), env.PGSSLMODE)) {
      const variable = name === 'url' ? 'DATABASE_URL' : 'DATABASE_LISTEN_URL';
      risks.push(`${variable} uses TLS without verification: the connection may end at an impostor.`);
    }
  }
  return risks;
}

/** False only where TLS is used and its certificate is not checked, as the driver reads the URL. */
function verifiesServer({ searchParams }: URL, defaultMode: string | undefined): boolean {
  const mode = searchParams.get('sslmode') ?? defaultMode;
  if (mode === 'no-verify' || searchParams.get('ssl') === 'no-verify') return false;
  const lax = mode === 'prefer' || (mode === 'require' && !searchParams.has('sslrootcert'));
  return !(lax && searchParams.get('uselibpqcompat') === 'true');
}
