import { natsSettings } from './nats-settings.ts';
import type { Setting, SettingWithDefault } from './setting.ts';

/** Where events come in from beside GraphQL, and how. */
export interface NatsConfig {
  /** URLs, with user and password where they name some. */
  readonly servers: readonly string[];
  readonly user: string | null;
  readonly password: string | null;
  readonly token: string | null;
  readonly nkey: string | null;
  /** A path, as those of TLS are. */
  readonly credentials: string | null;
  readonly tls: { readonly ca: string | null; readonly cert: string | null; readonly key: string | null };
  readonly streams: readonly string[];
  readonly consumer: string;
  readonly ackWaitSeconds: number;
  readonly maxDeliver: number;
  readonly batch: number;
}

interface Reader {
  <T>(name: keyof typeof natsSettings, setting: SettingWithDefault<T>): T;
  <T>(name: keyof typeof natsSettings, setting: Setting<T>): T | null;
}

/** Null: there is no broker, and what else is said of one has no meaning. */
export function readNats(read: Reader, faults: string[]): NatsConfig | null {
  const s = natsSettings;
  const servers = read('NATS_URL', s.NATS_URL);
  const nats = {
    user: read('NATS_USER', s.NATS_USER),
    password: read('NATS_PASSWORD', s.NATS_PASSWORD),
    token: read('NATS_TOKEN', s.NATS_TOKEN),
    nkey: read('NATS_NKEY', s.NATS_NKEY),
    credentials: read('NATS_CREDENTIALS', s.NATS_CREDENTIALS),
    tls: Object.freeze({
      ca: read('NATS_TLS_CA', s.NATS_TLS_CA),
      cert: read('NATS_TLS_CERT', s.NATS_TLS_CERT),
      key: read('NATS_TLS_KEY', s.NATS_TLS_KEY),
    }),
    streams: Object.freeze(read('NATS_STREAMS', s.NATS_STREAMS)),
    consumer: read('NATS_CONSUMER', s.NATS_CONSUMER),
    ackWaitSeconds: read('NATS_ACK_WAIT_SECONDS', s.NATS_ACK_WAIT_SECONDS),
    maxDeliver: read('NATS_MAX_DELIVER', s.NATS_MAX_DELIVER),
    batch: read('NATS_BATCH', s.NATS_BATCH),
  };
  if (!servers) return null;
  const config = Object.freeze({ servers: Object.freeze(servers), ...nats });
  faults.push(...faultsOf(config));
  return config;
}

function faultsOf({ servers, user, password, token, nkey, credentials, tls }: NatsConfig): string[] {
  const faults: string[] = [];
  const ways = {
    'a user in NATS_URL': servers.some((url) => new URL(url).username !== ''),
    NATS_USER: user !== null,
    NATS_TOKEN: token !== null,
    NATS_NKEY: nkey !== null,
    NATS_CREDENTIALS: credentials !== null,
  };
  const given = Object.entries(ways).flatMap(([name, isGiven]) => (isGiven ? [name] : []));
  const users = new Set(
    servers
      .map((url) => new URL(url))
      .flatMap(({ username, password: secret }) => (username ? [`${username}:${secret}`] : [])),
  );
  if (users.size > 1) faults.push('NATS_URL names different users: there can be one for all of its servers.');
  if (given.length > 1)
    faults.push(`${given.join(' and ')} are ways to sign in to NATS, of which there can be one.`);
  if ((user === null) !== (password === null))
    faults.push('NATS_USER and NATS_PASSWORD belong together: set both, or neither.');
  if ((tls.cert === null) !== (tls.key === null))
    faults.push('NATS_TLS_CERT and NATS_TLS_KEY belong together: set both, or neither.');
  return faults;
}

/** TLS is insisted on where a URL or a file of certificates asks for it. */
export const insistsOnTls = ({ servers, tls }: NatsConfig): boolean =>
  servers.some((url) => url.startsWith('tls:')) || tls.ca !== null || tls.cert !== null;
