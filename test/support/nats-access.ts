import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nkeys } from '@nats-io/transport-node';

type KeyPair = ReturnType<typeof nkeys.createUser>;

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** A new nkey of a user. */
export function makeNkey(): { seed: string; publicKey: string } {
  const pair = nkeys.createUser();
  return { seed: text(pair.getSeed()), publicKey: pair.getPublicKey() };
}

/** What an operator of NATS has: a configuration that trusts it, and a credentials file that it gave out. */
export function makeOperator(directory: string): { config: string; credentials: string } {
  const [operator, system, account] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createAccount()];
  const user = nkeys.createUser();
  const noLimit = { subs: -1, data: -1, payload: -1, imports: -1, exports: -1, conn: -1, leaf: -1 };
  const limits = {
    ...noLimit,
    wildcards: true,
    mem_storage: -1,
    disk_storage: -1,
    streams: -1,
    consumer: -1,
  };
  const accountJwt = (pair: KeyPair): string =>
    signed(operator, pair, { type: 'account', version: 2, limits: pair === account ? limits : noLimit });
  const userJwt = signed(account, user, { type: 'user', version: 2, subs: -1, data: -1, payload: -1 });
  const credentials = join(directory, 'user.creds');
  writeFileSync(
    credentials,
    `-----BEGIN NATS USER JWT-----\n${userJwt}\n------END NATS USER JWT------\n
-----BEGIN USER NKEY SEED-----\n${text(user.getSeed())}\n------END USER NKEY SEED------\n`,
  );
  const config = `operator: ${signed(operator, operator, { type: 'operator', version: 2 })}
system_account: ${system.getPublicKey()}
resolver: MEMORY
resolver_preload: {
  ${system.getPublicKey()}: ${accountJwt(system)}
  ${account.getPublicKey()}: ${accountJwt(account)}
}`;
  return { config, credentials };
}

function signed(issuer: KeyPair, subject: KeyPair, nats: object): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = {
    jti: 'test',
    iat: Math.floor(Date.now() / 1000),
    iss: issuer.getPublicKey(),
    sub: subject.getPublicKey(),
    name: 'test',
    nats,
  };
  const content = `${part({ typ: 'JWT', alg: 'ed25519-nkey' })}.${part(claims)}`;
  return `${content}.${Buffer.from(issuer.sign(Buffer.from(content))).toString('base64url')}`;
}

export interface Certificates {
  ca: string;
  cert: string;
  key: string;
}

/** Paths of an authority and of a certificate that it gave to localhost, for a server as well as for a client. */
export function makeCertificates(directory: string, name: string): Certificates {
  const path = (file: string): string => join(directory, `${name}-${file}`);
  const openssl = (...args: string[]): void => {
    execFileSync('openssl', args, { stdio: 'pipe' });
  };
  const key = ['-newkey', 'rsa:2048', '-nodes'];
  openssl('req', '-x509', ...key, '-keyout', path('ca.key'), '-out', path('ca.pem'), '-subj', `/CN=${name}`);
  openssl('req', ...key, '-keyout', path('key.pem'), '-out', path('request.pem'), '-subj', '/CN=runplane');
  writeFileSync(path('names'), 'subjectAltName=DNS:localhost');
  const authority = ['-CA', path('ca.pem'), '-CAkey', path('ca.key'), '-CAcreateserial'];
  openssl(
    'x509',
    '-req',
    '-in',
    path('request.pem'),
    ...authority,
    '-extfile',
    path('names'),
    '-out',
    path('cert.pem'),
  );
  return { ca: path('ca.pem'), cert: path('cert.pem'), key: path('key.pem') };
}
