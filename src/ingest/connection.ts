import { readFileSync } from 'node:fs';
import {
  connect,
  credsAuthenticator,
  type NatsConnection,
  type NodeConnectionOptions,
  nkeyAuthenticator,
} from '@nats-io/transport-node';
import { insistsOnTls, type NatsConfig } from '../nats-config.ts';

const connectMs = 5000;
/** A connection that is dead, though nobody closed it, is noticed after two or three of them. */
const pingMs = 5000;

/** Connects once; the connection ends when it breaks, and whoever made it makes another. */
export const connectTo = (config: NatsConfig, name: string): Promise<NatsConnection> =>
  connect(connectionOptions(config, name));

export const hostsOf = ({ servers }: NatsConfig): string[] => servers.map((url) => new URL(url).host);

function connectionOptions(config: NatsConfig, name: string): NodeConnectionOptions {
  const { tls } = config;
  return {
    servers: hostsOf(config),
    name,
    reconnect: false,
    timeout: connectMs,
    pingInterval: pingMs,
    maxPingOut: 2,
    ...credentialsOf(config),
    ...(insistsOnTls(config) && {
      tls: {
        ...(tls.ca !== null && { caFile: tls.ca }),
        ...(tls.cert !== null && { certFile: tls.cert }),
        ...(tls.key !== null && { keyFile: tls.key }),
      },
    }),
  };
}

function credentialsOf(config: NatsConfig): Partial<NodeConnectionOptions> {
  const { credentials, nkey, token, user, password } = config;
  if (credentials !== null) return { authenticator: credsAuthenticator(readFileSync(credentials)) };
  if (nkey !== null) return { authenticator: nkeyAuthenticator(new TextEncoder().encode(nkey)) };
  if (token !== null) return { token };
  if (user !== null) return { user, pass: password ?? '' };
  const [named] = config.servers.map((url) => new URL(url)).filter(({ username }) => username !== '');
  if (!named) return {};
  const name = decodeURIComponent(named.username);
  return named.password === '' ? { token: name } : { user: name, pass: decodeURIComponent(named.password) };
}
