import { isIPv4 } from 'node:net';
import { clientSettings } from './client-settings.ts';
import { natsSettings } from './nats-settings.ts';
import { choice, integer, path, type Setting, type SettingWithDefault } from './setting.ts';
import { telemetrySettings } from './telemetry-settings.ts';

const roles = ['api', 'scheduler', 'ingest', 'page'] as const;
const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

export type Role = (typeof roles)[number];
export type LogLevel = (typeof logLevels)[number];

const days = (byDefault: number, meaning: string): SettingWithDefault<number> =>
  integer(0, 36_500, byDefault, `${meaning}; 0 is for ever.`);

const postgresUrl = (meaning: string): Setting<string> => ({
  default: null,
  values: 'a URL such as postgres://user:password@host:5432/database',
  meaning,
  parse: (text) => (/^postgres(ql)?:\/\//.test(text) && URL.canParse(text) ? text : undefined),
  secret: true,
});

/** Every variable that the product reads. docs/configuration.md says the same to its users. */
export const settings = {
  RUNPLANE_HOST: {
    default: '127.0.0.1',
    values: 'a host name or an IP address without a port',
    meaning: 'Address that the server listens on. A loopback address, unless RUNPLANE_AUTH is token.',
    parse: (text) => (/^[\w.:%-]+$/.test(text) && !/^[^:]*:\d+$/.test(text) ? text : undefined),
  } satisfies SettingWithDefault<string>,
  RUNPLANE_PORT: integer(0, 65_535, 4000, 'Port that the server listens on; 0 takes any free one.'),
  RUNPLANE_ROLES: {
    default: roles.join(','),
    values: `a comma-separated list of ${roles.join(', ')}`,
    meaning: 'What this process does; all of it by default.',
    parse: parseRoles,
  } satisfies SettingWithDefault<Role[]>,
  RUNPLANE_AUTH: choice(
    ['off', 'token'],
    'off',
    'How clients prove who they are: not at all, or by a token (docs/authentication.md).',
  ),
  RUNPLANE_ADMIN_TOKEN: {
    default: null,
    values: '16 to 512 visible ASCII characters',
    meaning: 'A token with all scopes, to create the first API token with.',
    parse: (text) => (/^[\x21-\x7e]{16,512}$/.test(text) ? text : undefined),
    secret: true,
  } satisfies Setting<string>,
  RUNPLANE_OIDC_ISSUER: {
    default: null,
    values: 'an https URL, or an http one on this machine',
    meaning: 'An identity provider whose tokens (JWT) are taken too, as it stands in them.',
    parse: (text) => (isIssuer(text) ? text : undefined),
  } satisfies Setting<string>,
  RUNPLANE_OIDC_AUDIENCE: {
    default: null,
    values: 'a text',
    meaning: 'The audience that its tokens have to name.',
    parse: (text) => text,
  } satisfies Setting<string>,
  RUNPLANE_OIDC_SCOPE_CLAIM: {
    default: 'scope',
    values: 'a text',
    meaning: 'The claim of its tokens that has the scopes, as READ or runplane:read.',
    parse: (text) => text,
  } satisfies SettingWithDefault<string>,
  RUNPLANE_ALLOWED_ORIGINS: {
    default: null,
    values: 'a comma-separated list of origins such as https://console.example',
    meaning:
      'Origins of other sites whose pages may use the API from a browser (CORS), with tokens of their own; none by default.',
    parse: parseOrigins,
  } satisfies Setting<string[]>,
  RUNPLANE_REQUESTS_PER_MINUTE: integer(
    0,
    10_000_000,
    120_000,
    'Requests a minute that one token may send to this process, in any rhythm; 0 is no limit.',
  ),
  RUNPLANE_STREAMS_PER_TOKEN: integer(
    1,
    1_000_000,
    100,
    'Streams that one token may have open on this process.',
  ),
  RUNPLANE_TRUSTED_DOCUMENTS: path(
    'File of the only GraphQL documents that are executed: one JSON object of SHA-256 hashes and documents.',
  ),
  RUNPLANE_SECRET_KEY: {
    default: null,
    values: 'at least 32 characters',
    meaning:
      'Key of the lease tokens, the same on all replicas; when absent, one that is kept in the database.',
    parse: (text) => (text.length >= 32 ? text : undefined),
    secret: true,
  } satisfies Setting<string>,
  RUNPLANE_DATA_DIR: {
    default: '.runplane',
    values: 'a path',
    meaning: 'Directory of the embedded Postgres, which runs when DATABASE_URL is absent.',
    parse: (text) => (text.includes('\0') ? undefined : text),
  } satisfies SettingWithDefault<string>,
  DATABASE_URL: postgresUrl(
    'The Postgres to use, directly or through a pooler; when absent, the embedded one.',
  ),
  DATABASE_LISTEN_URL: postgresUrl(
    'A direct connection for LISTEN and migrations, when DATABASE_URL is a pooler in transaction mode. ' +
      'Its presence means that nothing relies on sessions: no named statements.',
  ),
  RUNPLANE_DB_CONNECTIONS: integer(2, 500, 10, 'Connections of the pool, at most.'),
  RUNPLANE_DB_STATEMENT_TIMEOUT_MS: integer(
    0,
    3_600_000,
    30_000,
    'Milliseconds after which Postgres ends a statement; 0 is never.',
  ),
  RUNPLANE_DB_LOCK_TIMEOUT_MS: integer(
    0,
    3_600_000,
    5000,
    'Milliseconds that a statement waits for a lock; 0 is for ever.',
  ),
  RUNPLANE_DB_IDLE_IN_TRANSACTION_TIMEOUT_MS: integer(
    0,
    3_600_000,
    30_000,
    'Milliseconds after which Postgres ends a session that is idle in a transaction; 0 is never.',
  ),
  RUNPLANE_CANCEL_GRACE_SECONDS: integer(
    1,
    3600,
    30,
    'Seconds that a worker has to report after a cancel, before its lease is taken; the same on all processes.',
  ),
  RUNPLANE_HOUSEKEEPING: choice(
    ['on', 'off'],
    'on',
    'Whether a process with the scheduler role repairs what does not fit together and deletes what is too old.',
  ),
  RUNPLANE_HOUSEKEEPING_THRESHOLD_SECONDS: integer(
    60,
    86_400,
    600,
    'Seconds that nothing has changed where something does not fit together, before housekeeping repairs it.',
  ),
  RUNPLANE_RETENTION_RUNS_DAYS: days(30, 'Days that a run is kept after it ended'),
  RUNPLANE_RETENTION_EVENTS_DAYS: days(30, 'Days that an event is kept'),
  RUNPLANE_RETENTION_CHANGE_LOG_DAYS: days(7, 'Days that a change can be resumed from'),
  RUNPLANE_RETENTION_ATTEMPT_EVENTS_DAYS: days(
    7,
    'Days that the events of attempts are kept after their run ended',
  ),
  RUNPLANE_RETENTION_AUDIT_DAYS: days(365, 'Days that an audit entry is kept'),
  ...natsSettings,
  ...telemetrySettings,
  LOG_LEVEL: choice(logLevels, 'info', 'The least severe log lines that are written.'),
  ...clientSettings,
} as const;

export type SettingName = keyof typeof settings;

function parseRoles(text: string): Role[] | undefined {
  const names = text.split(',').map((name) => name.trim());
  return names.every((name) => roles.some((role) => role === name))
    ? roles.filter((role) => names.includes(role))
    : undefined;
}

function isIssuer(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname.replace(/^\[|\]$/g, '')));
}

export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));

function parseOrigins(text: string): string[] | undefined {
  const origins = text.split(',').map((origin) => origin.trim());
  return origins.every((origin) => URL.canParse(origin) && new URL(origin).origin === origin)
    ? origins
    : undefined;
}
