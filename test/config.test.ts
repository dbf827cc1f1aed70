import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { readClientConfig, readConfig } from '../src/config.ts';
import { describeConfig } from '../src/describe-config.ts';
import { settings } from '../src/settings.ts';
import { faultsOf } from './support/config-faults.ts';

describe('readConfig', () => {
  it('has a default for everything', () => {
    expect(readConfig({ PATH: '/bin' })).toEqual({
      host: '127.0.0.1',
      port: 4000,
      roles: ['api', 'scheduler', 'ingest', 'page'],
      authentication: null,
      access: {
        origins: [],
        requestsPerMinute: 120_000,
        streamsPerToken: 100,
        trustedDocuments: null,
      },
      secretKey: null,
      logLevel: 'info',
      dataDir: '.runplane',
      database: {
        url: null,
        listenUrl: null,
        connections: 10,
        timeouts: { statement: 30_000, lock: 5000, idleInTransaction: 30_000 },
      },
      cancelGraceSeconds: 30,
      housekeeping: {
        on: true,
        thresholdSeconds: 600,
        retentionDays: { runs: 30, events: 30, changeLog: 7, attemptEvents: 7, audit: 365 },
      },
      nats: null,
      telemetry: null,
      risks: [expect.stringContaining('authentication is off')],
    });
  });

  it('reads what is set', () => {
    const config = readConfig({
      RUNPLANE_HOST: '::1',
      RUNPLANE_PORT: '0',
      RUNPLANE_ROLES: 'scheduler, api',
      RUNPLANE_AUTH: 'off',
      RUNPLANE_ALLOWED_ORIGINS: 'https://console.example, http://localhost:5173',
      RUNPLANE_REQUESTS_PER_MINUTE: '0',
      RUNPLANE_STREAMS_PER_TOKEN: '7',
      RUNPLANE_TRUSTED_DOCUMENTS: 'documents.json',
      RUNPLANE_SECRET_KEY: 'k'.repeat(32),
      RUNPLANE_DATA_DIR: '/var/lib/runplane',
      DATABASE_URL: 'postgres://me@pool:6432/app',
      DATABASE_LISTEN_URL: 'postgresql://me@db/app',
      RUNPLANE_DB_CONNECTIONS: '20',
      RUNPLANE_DB_STATEMENT_TIMEOUT_MS: '0',
      RUNPLANE_DB_LOCK_TIMEOUT_MS: '1',
      RUNPLANE_DB_IDLE_IN_TRANSACTION_TIMEOUT_MS: '2',
      RUNPLANE_CANCEL_GRACE_SECONDS: '3600',
      RUNPLANE_HOUSEKEEPING: 'off',
      RUNPLANE_HOUSEKEEPING_THRESHOLD_SECONDS: '60',
      RUNPLANE_RETENTION_RUNS_DAYS: '1',
      RUNPLANE_RETENTION_EVENTS_DAYS: '2',
      RUNPLANE_RETENTION_CHANGE_LOG_DAYS: '3',
      RUNPLANE_RETENTION_ATTEMPT_EVENTS_DAYS: '4',
      RUNPLANE_RETENTION_AUDIT_DAYS: '0',
      LOG_LEVEL: 'debug',
    });
    expect(config).toMatchObject({
      host: '::1',
      port: 0,
      roles: ['api', 'scheduler'],
      access: {
        origins: ['https://console.example', 'http://localhost:5173'],
        requestsPerMinute: 0,
        streamsPerToken: 7,
        trustedDocuments: 'documents.json',
      },
      secretKey: 'k'.repeat(32),
      logLevel: 'debug',
      dataDir: '/var/lib/runplane',
      database: {
        url: 'postgres://me@pool:6432/app',
        listenUrl: 'postgresql://me@db/app',
        connections: 20,
        timeouts: { statement: 0, lock: 1, idleInTransaction: 2 },
      },
      cancelGraceSeconds: 3600,
      housekeeping: {
        on: false,
        thresholdSeconds: 60,
        retentionDays: { runs: 1, events: 2, changeLog: 3, attemptEvents: 4, audit: 0 },
      },
    });
  });

  it('takes an empty variable as an absent one', () => {
    expect(readConfig({ RUNPLANE_PORT: '', DATABASE_URL: ' ' })).toEqual(readConfig({}));
  });

  it('is frozen at every depth', () => {
    const config = readConfig({});
    for (const part of [
      config,
      config.roles,
      config.access,
      config.access.origins,
      config.risks,
      config.database,
      config.database.timeouts,
      config.housekeeping,
      config.housekeeping.retentionDays,
    ]) {
      expect(Object.isFrozen(part)).toBe(true);
    }
  });

  it('reports all faults at once', () => {
    const faults = faultsOf({
      RUNPLANE_PORT: '80 80',
      LOG_LEVEL: 'loud',
      RUNPLANE_SECRET_KEY: 'short',
      RUNPLANE_PROT: '1',
    });
    expect([...faults].sort()).toEqual([
      'LOG_LEVEL is "loud": it must be one of fatal, error, warn, info, debug, trace, silent.',
      'RUNPLANE_PORT is "80 80": it must be an integer from 0 to 65535.',
      'RUNPLANE_SECRET_KEY is wrong: it must be at least 32 characters.',
      'There is no setting RUNPLANE_PROT; the nearest is RUNPLANE_PORT.',
    ]);
  });

  it.each([
    ['RUNPLANE_PORT', '65536'],
    ['RUNPLANE_PORT', '-1'],
    ['RUNPLANE_PORT', '1e3'],
    ['RUNPLANE_HOST', '127.0.0.1:4000'],
    ['RUNPLANE_HOST', 'http://localhost'],
    ['RUNPLANE_ROLES', 'api,worker'],
    ['RUNPLANE_ROLES', ','],
    ['RUNPLANE_AUTH', 'tokens'],
    ['RUNPLANE_DB_CONNECTIONS', '1'],
    ['RUNPLANE_DB_LOCK_TIMEOUT_MS', '3600001'],
    ['DATABASE_URL', 'mysql://host/db'],
    ['DATABASE_URL', 'host=localhost'],
    ['RUNPLANE_CANCEL_GRACE_SECONDS', '0'],
    ['RUNPLANE_CANCEL_GRACE_SECONDS', '3601'],
    ['RUNPLANE_HOUSEKEEPING', 'no'],
    ['RUNPLANE_HOUSEKEEPING_THRESHOLD_SECONDS', '59'],
    ['RUNPLANE_RETENTION_RUNS_DAYS', '-1'],
    ['RUNPLANE_RETENTION_AUDIT_DAYS', '36501'],
    ['LOG_LEVEL', 'INFO'],
  ])('refuses %s=%s by name', (name, value) => {
    expect(faultsOf({ [name]: value })).toEqual([
      expect.stringMatching(new RegExp(`^${name} is .*: it must be `)),
    ]);
  });

  it.each([
    ['RUNPLANE_ADMIN_TOKEN', 'fifteen-letters'],
    ['RUNPLANE_ADMIN_TOKEN', 'not in one header field'],
    ['RUNPLANE_OIDC_ISSUER', 'http://id.example.com'],
    ['RUNPLANE_OIDC_ISSUER', 'id.example.com'],
  ])('refuses %s=%s by name where tokens are asked for', (name, value) => {
    const env = { RUNPLANE_OIDC_ISSUER: 'https://id.example.com', RUNPLANE_OIDC_AUDIENCE: 'runplane' };
    expect(faultsOf({ ...env, RUNPLANE_AUTH: 'token', [name]: value })).toEqual([
      expect.stringMatching(new RegExp(`^${name} is .*: it must be `)),
    ]);
  });

  it('never repeats a secret in a fault', () => {
    const faults = faultsOf({
      DATABASE_URL: 'mysql://me:hunter2@host/db',
      RUNPLANE_SECRET_KEY: 'hunter2',
      RUNPLANE_AUTH: 'token',
      RUNPLANE_ADMIN_TOKEN: 'hunter2',
    });
    expect(faults).toHaveLength(3);
    expect(faults.join()).not.toContain('hunter2');
  });

  it('refuses a misspelt variable and names the nearest one', () => {
    expect(faultsOf({ RUNPLANE_DB_LOCK_TIMEOUT: '1' })).toEqual([
      'There is no setting RUNPLANE_DB_LOCK_TIMEOUT; the nearest is RUNPLANE_DB_LOCK_TIMEOUT_MS.',
    ]);
    expect(faultsOf({ RUNPLANE_TEST_TIER: 'system' })).toEqual([]);
  });

  it.each(['0.0.0.0', '::', '10.0.0.1', 'example.com'])(
    'refuses to listen on %s without authentication',
    (host) => {
      expect(faultsOf({ RUNPLANE_HOST: host, RUNPLANE_AUTH: 'off' })).toEqual([
        expect.stringMatching(/RUNPLANE_AUTH is off.*Set RUNPLANE_AUTH to token/),
      ]);
      expect(faultsOf({ RUNPLANE_HOST: host, RUNPLANE_AUTH: 'token' })).toEqual([]);
    },
  );

  it('reads who may sign in', () => {
    expect(
      readConfig({
        RUNPLANE_AUTH: 'token',
        RUNPLANE_ADMIN_TOKEN: 'a'.repeat(16),
        RUNPLANE_OIDC_ISSUER: 'https://id.example.com',
        RUNPLANE_OIDC_AUDIENCE: 'runplane',
        RUNPLANE_OIDC_SCOPE_CLAIM: 'permissions',
      }).authentication,
    ).toEqual({
      adminToken: 'a'.repeat(16),
      external: { issuer: 'https://id.example.com', audience: 'runplane', scopeClaim: 'permissions' },
    });
    expect(readConfig({ RUNPLANE_AUTH: 'token' })).toMatchObject({
      authentication: { adminToken: null, external: null },
      risks: [],
    });
  });

  it.each(['RUNPLANE_ADMIN_TOKEN', 'RUNPLANE_OIDC_ISSUER'])(
    'refuses %s while nobody is asked for a token',
    (name) => {
      const value = 'https://id.example.com';
      expect(faultsOf({ [name]: value, RUNPLANE_OIDC_AUDIENCE: 'runplane' })).toContainEqual(
        expect.stringContaining(`${name} is set, but RUNPLANE_AUTH is off`),
      );
    },
  );

  it('refuses an identity provider without an audience, and an audience without one', () => {
    for (const [name, value] of [
      ['RUNPLANE_OIDC_ISSUER', 'https://id.example.com'],
      ['RUNPLANE_OIDC_AUDIENCE', 'runplane'],
    ] as const) {
      expect(faultsOf({ RUNPLANE_AUTH: 'token', [name]: value })).toEqual([
        'RUNPLANE_OIDC_ISSUER and RUNPLANE_OIDC_AUDIENCE belong together: set both, or neither.',
      ]);
    }
  });

  it.each(['localhost', '127.0.0.2', '::1'])('listens on %s', (host) => {
    expect(readConfig({ RUNPLANE_HOST: host }).host).toBe(host);
  });

  it('refuses a direct connection without the pooled one', () => {
    expect(faultsOf({ DATABASE_LISTEN_URL: 'postgres://db/app' })).toEqual([
      expect.stringContaining('DATABASE_LISTEN_URL is set, but DATABASE_URL is not'),
    ]);
  });
});

describe('describeConfig', () => {
  it('shows the settings in effect without secrets', () => {
    const lines = describeConfig(
      readConfig({
        RUNPLANE_SECRET_KEY: 'hunter2'.repeat(6),
        RUNPLANE_AUTH: 'token',
        RUNPLANE_ADMIN_TOKEN: 'hunter2'.repeat(6),
        RUNPLANE_OIDC_ISSUER: 'https://id.example.com',
        RUNPLANE_OIDC_AUDIENCE: 'runplane',
        DATABASE_URL: 'postgres://me:hunter2@pool:6432/app?password=hunter2&sslmode=verify-full',
        DATABASE_LISTEN_URL: 'postgres://me:hunter2@db/app?sslmode=verify-full',
        RUNPLANE_HOST: '::1',
        RUNPLANE_PORT: '0',
      }),
    );
    expect(lines).toEqual([
      'address: [::1]:any free port',
      'roles: api, scheduler, ingest, page',
      'database: postgres://me@pool:6432/app?sslmode=verify-full',
      'listen on: postgres://me@db/app?sslmode=verify-full (no named statements)',
      'database connections: 10',
      'database timeouts: statement 30000 ms, lock 5000 ms, idle in transaction 30000 ms',
      'secret key: set (42 chars)',
      'authentication: token, admin token set, tokens of https://id.example.com',
      'access: 120000 requests a minute and token, 100 streams a token, no other sites, any document',
      'grace time of a cancel: 30 s',
      'housekeeping: after 600 s; keeps runs 30 days, events 30 days, the change log 7 days, attempt events 7 days, audit entries 365 days',
      'events from NATS: none',
      'spans: none',
      'log level: info',
    ]);
  });

  it('shows where spans go without secrets', () => {
    const lines = describeConfig(
      readConfig({
        OTEL_EXPORTER_OTLP_ENDPOINT: 'http://me:hunter2@collector:4318',
        OTEL_TRACES_SAMPLER: 'traceidratio',
        OTEL_TRACES_SAMPLER_ARG: '0.5',
      }),
    );
    expect(lines).toContain(
      'spans: traceidratio 0.5, of runplane, by http/protobuf to http://me@collector:4318/',
    );
  });

  it.each([
    [
      'PIPELINE at nats://me@one:4222, nats://me@two:4222, consumer runplane, ack wait 30 s, 10 deliveries, 100 at once',
      { NATS_URL: 'nats://me:hunter2@one:4222, nats://me:hunter2@two:4222' },
    ],
    [
      'PIPELINE at nats://***@one:4222, consumer runplane, ack wait 30 s, 10 deliveries, 100 at once',
      { NATS_URL: 'nats://hunter2@one:4222' },
    ],
    [
      'A, B at tls://one:4222, consumer c, signed in by token, TLS, ack wait 5 s, 3 deliveries, 7 at once',
      {
        NATS_URL: 'tls://one:4222',
        NATS_TOKEN: 'hunter2',
        NATS_STREAMS: 'A, B,A',
        NATS_CONSUMER: 'c',
        NATS_ACK_WAIT_SECONDS: '5',
        NATS_MAX_DELIVER: '3',
        NATS_BATCH: '7',
      },
    ],
  ])('shows NATS without secrets: %s', (line, env) => {
    expect(describeConfig(readConfig(env))).toContain(`events from NATS: ${line}`);
  });

  it.each([
    ['DATABASE_URL uses TLS without verification', { DATABASE_URL: 'postgres://db/app?sslmode=no-verify' }],
    [
      'DATABASE_URL uses TLS without verification',
      { DATABASE_URL: 'postgres://db/app', PGSSLMODE: 'no-verify' },
    ],
    [
      'DATABASE_URL uses TLS without verification',
      { DATABASE_URL: 'postgres://db/app?uselibpqcompat=true&sslmode=require' },
    ],
    [
      'DATABASE_LISTEN_URL uses TLS without verification',
      { DATABASE_URL: 'postgres://db/app', DATABASE_LISTEN_URL: 'postgres://db/app?ssl=no-verify' },
    ],
    ['NODE_TLS_REJECT_UNAUTHORIZED is 0', { NODE_TLS_REJECT_UNAUTHORIZED: '0' }],
  ])('warns: %s', (warning, env) => {
    expect(describeConfig(readConfig(env))).toContainEqual(expect.stringContaining(`warning: ${warning}`));
  });

  it('does not warn of TLS that is verified', () => {
    const config = readConfig({ DATABASE_URL: 'postgres://db/app?sslmode=require' });
    expect(config.risks).toHaveLength(1);
  });
});

describe('readClientConfig', () => {
  it('reads the server and the token, which a server that has the same environment does not mind', () => {
    expect(readClientConfig({})).toEqual({ url: 'http://127.0.0.1:4000', token: null });
    const env = { RUNPLANE_URL: 'https://control.example', RUNPLANE_TOKEN: 'secret' };
    expect(readClientConfig(env)).toEqual({ url: 'https://control.example', token: 'secret' });
    expect(readConfig(env)).toEqual(readConfig({}));
  });

  it('tells every fault, and never the token', () => {
    expect(() => readClientConfig({ RUNPLANE_URL: 'control.example', RUNPLANE_TOKEN: 'a secret' })).toThrow(
      'RUNPLANE_URL is "control.example": it must be an http or https URL.\nRUNPLANE_TOKEN is wrong: it must be visible ASCII characters.',
    );
  });
});

describe('docs/configuration.md', () => {
  it('is what the code says, in both directions', async () => {
    const text = await readFile(new URL('../docs/configuration.md', import.meta.url), 'utf8');
    const rows = text.split('\n').filter((line) => line.startsWith('| `'));
    expect(
      rows.map((row) =>
        row
          .split('|')
          .map((cell) => cell.trim())
          .slice(1, -1),
      ),
    ).toEqual(
      Object.entries(settings).map(([name, setting]) => [
        `\`${name}\``,
        setting.default === null ? '' : `\`${setting.default}\``,
        setting.values,
        setting.meaning,
      ]),
    );
  });
});
