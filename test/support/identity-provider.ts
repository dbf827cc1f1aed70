import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';

type KeyPair = Awaited<ReturnType<typeof generateKeyPair>>;

export interface IdentityProvider {
  issuer: string;
  /** Requests for its keys so far. */
  keyRequests: () => number;
  /** A token that it signs, valid for an hour unless the claims say otherwise. */
  sign(claims: JWTPayload, key?: string): Promise<string>;
  /** From now on it signs with a new key. */
  rotate(): Promise<void>;
  /** Whether it answers. */
  up(is: boolean): void;
  stop(): Promise<void>;
}

/** An OpenID provider on a free port: its discovery document, its keys and the tokens it signs. */
export async function startIdentityProvider(audience: string): Promise<IdentityProvider> {
  const keys = new Map<string, KeyPair>();
  let answers = true;
  let keyRequests = 0;
  const rotate = async (): Promise<void> => {
    keys.set(`key-${keys.size + 1}`, await generateKeyPair('ES256', { extractable: true }));
  };
  await rotate();
  const server = createServer((request, response) => {
    const answer = async (): Promise<object | null> => {
      if (!answers) return null;
      if (request.url === '/.well-known/openid-configuration') return { issuer, jwks_uri: `${issuer}/keys` };
      if (request.url !== '/keys') return null;
      keyRequests++;
      const published = [...keys].map(async ([kid, { publicKey }]) => ({
        ...(await exportJWK(publicKey)),
        kid,
        alg: 'ES256',
      }));
      return { keys: await Promise.all(published) };
    };
    void answer().then((body) => {
      response.writeHead(body ? 200 : 500, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    issuer,
    keyRequests: () => keyRequests,
    sign: async (claims, key = `key-${keys.size}`) => {
      const pair = keys.get(key) ?? (await generateKeyPair('ES256'));
      return new SignJWT({
        iss: issuer,
        aud: audience,
        sub: 'alice',
        exp: Math.floor(Date.now() / 1000) + 3600,
        ...claims,
      })
        .setProtectedHeader({ alg: 'ES256', kid: key })
        .sign(pair.privateKey);
    },
    rotate,
    up: (is) => {
      answers = is;
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
