import type { IncomingMessage } from 'node:http';
import { Kind, OperationTypeNode, parse } from 'graphql';
import { type Authority, local } from '../domain/credential.ts';
import { HttpError } from './http-error.ts';

/** Finds out whose a credential is; null: nobody's, for whatever reason. */
export interface Credentials {
  /** Who asks without one. */
  none: Authority;
  ofToken(token: string): Promise<Authority | null>;
  ofSession(cookie: string): Promise<Authority | null>;
}

/** Everybody may do everything: on a loopback host only. */
export const authenticationOff: Credentials = {
  none: local,
  ofToken: () => Promise.resolve(local),
  ofSession: () => Promise.resolve(local),
};

const sessionCookie = 'runplane_session';

/** Never tells which part of a credential was wrong. */
const unauthenticated = (): HttpError =>
  new HttpError(401, 'UNAUTHENTICATED', 'This needs a valid credential: Authorization: Bearer <token>.');

/** Who a request comes from. A wrong credential is refused; none at all is for the operation to say. */
export async function authenticate(request: IncomingMessage, credentials: Credentials): Promise<Authority> {
  const { authorization } = request.headers;
  const cookie = authorization === undefined ? cookieOf(request) : null;
  if (authorization === undefined && cookie === null) {
    // Lease tokens come in bodies.
    if (!credentials.none.viewer.signedIn && request.method !== 'POST') throw unauthenticated();
    return credentials.none;
  }
  const token = /^Bearer +([\x21-\x7e]{1,8192})$/i.exec(authorization ?? '')?.[1];
  const authority =
    cookie !== null
      ? await credentials.ofSession(cookie)
      : token === undefined
        ? null
        : await credentials.ofToken(token);
  if (!authority) throw unauthenticated();
  return authority;
}

/** Refuses an operation without a credential, unless lease tokens are all that it needs. */
export function requireSignedIn({ viewer }: Authority, query: string | null): void {
  if (!viewer.signedIn && !(query !== null && needsOnlyLeaseTokens(query))) throw unauthenticated();
}

const byLeaseToken = new Set(['extendLeases', 'reportResult', 'reportResults', 'appendAttemptEvents']);

function needsOnlyLeaseTokens(query: string): boolean {
  try {
    const { definitions } = parse(query, { maxLexicalTokens: 10_000, noLocation: true });
    return definitions.every(
      (definition) =>
        definition.kind === Kind.FRAGMENT_DEFINITION ||
        (definition.kind === Kind.OPERATION_DEFINITION &&
          definition.operation === OperationTypeNode.MUTATION &&
          definition.selectionSet.selections.every(
            (field) => field.kind === Kind.FIELD && byLeaseToken.has(field.name.value),
          )),
    );
  } catch {
    return false;
  }
}

function cookieOf(request: IncomingMessage): string | null {
  for (const pair of (request.headers.cookie ?? '').split(';')) {
    const [name, ...value] = pair.split('=');
    if (name?.trim() === sessionCookie) return value.join('=').trim();
  }
  return null;
}
