import type { Config } from './config.ts';
import { insistsOnTls, type NatsConfig } from './nats-config.ts';
import type { TelemetryConfig } from './telemetry-config.ts';

/** The effective settings, one a line, fit to be shown: without passwords and keys. */
export function describeConfig(config: Config): string[] {
  const { database } = config;
  const { statement, lock, idleInTransaction } = database.timeouts;
  return [
    `address: ${config.host.includes(':') ? `[${config.host}]` : config.host}:${config.port === 0 ? 'any free port' : config.port}`,
    `roles: ${config.roles.join(', ')}`,
    `database: ${database.url === null ? `embedded Postgres in ${config.dataDir}` : withoutPassword(database.url)}`,
    ...(database.listenUrl === null
      ? []
      : [`listen on: ${withoutPassword(database.listenUrl)} (no named statements)`]),
    `database connections: ${database.connections}`,
    `database timeouts: statement ${statement} ms, lock ${lock} ms, idle in transaction ${idleInTransaction} ms`,
    `secret key: ${config.secretKey === null ? 'in the database' : `set (${config.secretKey.length} chars)`}`,
    `authentication: ${describeAuthentication(config.authentication)}`,
    `access: ${describeAccess(config.access)}`,
    `grace time of a cancel: ${config.cancelGraceSeconds} s`,
    `housekeeping: ${describeHousekeeping(config.housekeeping)}`,
    `events from NATS: ${config.nats === null ? 'none' : describeNats(config.nats)}`,
    `spans: ${config.telemetry === null ? 'none' : describeTelemetry(config.telemetry)}`,
    `log level: ${config.logLevel}`,
    ...config.risks.map((risk) => `warning: ${risk}`),
  ];
}

function describeAuthentication(authentication: Config['authentication']): string {
  if (!authentication) return 'off';
  const { adminToken, external } = authentication;
  return [
    'token',
    adminToken === null ? 'no admin token' : 'admin token set',
    ...(external ? [`tokens of ${external.issuer}`] : []),
  ].join(', ');
}

function describeAccess(access: Config['access']): string {
  const { origins, requestsPerMinute, streamsPerToken, trustedDocuments } = access;
  return [
    requestsPerMinute === 0 ? 'any number of requests' : `${requestsPerMinute} requests a minute and token`,
    `${streamsPerToken} streams a token`,
    origins.length === 0 ? 'no other sites' : `pages of ${origins.join(', ')}`,
    trustedDocuments === null ? 'any document' : `only the documents of ${trustedDocuments}`,
  ].join(', ');
}

function describeHousekeeping({ on, thresholdSeconds, retentionDays }: Config['housekeeping']): string {
  if (!on) return 'off';
  const kept = (days: number): string => (days === 0 ? 'for ever' : `${days} days`);
  const { runs, events, changeLog, attemptEvents, audit } = retentionDays;
  return (
    `after ${thresholdSeconds} s; keeps runs ${kept(runs)}, events ${kept(events)}, ` +
    `the change log ${kept(changeLog)}, attempt events ${kept(attemptEvents)}, audit entries ${kept(audit)}`
  );
}

function describeTelemetry({ endpoint, protocol, serviceName, sampler, ratio }: TelemetryConfig): string {
  const share = sampler.endsWith('traceidratio') ? ` ${ratio}` : '';
  const to = endpoint === null ? 'http://localhost:4318' : withoutSecrets(endpoint);
  return `${sampler}${share}, of ${serviceName}, by ${protocol} to ${to}`;
}

function describeNats(nats: NatsConfig): string {
  const { streams, consumer, ackWaitSeconds, maxDeliver, batch } = nats;
  const way = (['user', 'token', 'nkey', 'credentials'] as const).find((name) => nats[name] !== null);
  return [
    `${streams.join(', ')} at ${nats.servers.map(withoutSecrets).join(', ')}`,
    `consumer ${consumer}`,
    ...(way === undefined ? [] : [`signed in by ${way}`]),
    ...(insistsOnTls(nats) ? ['TLS'] : []),
    `ack wait ${ackWaitSeconds} s, ${maxDeliver} deliveries, ${batch} at once`,
  ].join(', ');
}

/** A token stands where a user's name would. */
function withoutSecrets(text: string): string {
  const url = new URL(text);
  if (url.password === '') url.username = url.username && '***';
  url.password = '';
  return url.href;
}

function withoutPassword(text: string): string {
  const url = new URL(text);
  url.password = '';
  for (const name of ['password', 'sslpassword']) url.searchParams.delete(name);
  return url.href;
}
