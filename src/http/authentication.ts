import type { IncomingMessage } from 'node:http';
import type { DocumentNode } from 'graphql';
import type { Authority, Credentials } from '../domain/credential.ts';
import { isUnavailable } from '../domain/unavailable.ts';
import { HttpError } from './http-error.ts';
import { hasOnlyRootFields } from './root-fields.ts';

export const sessionCookie = 'runplane_session';

/** Never tells which part of a credential was wrong. */
export const unauthenticated = (): HttpError =>
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
  const token = bearerToken(request);
  const authority =
    cookie !== null ? credentials.ofSession(cookie) : token === null ? null : credentials.ofToken(token);
  const found = await orThrowUnavailable(authority);
  if (!found) throw unauthenticated();
  return found;
}

/** The token of the Authorization header. */
export const bearerToken = (request: IncomingMessage): string | null =>
  /^Bearer +([\x21-\x7e]{1,8192})$/i.exec(request.headers.authorization ?? '')?.[1] ?? null;

/** A credential that cannot be checked now is not a wrong one. */
export async function orThrowUnavailable<T>(check: Promise<T> | T): Promise<T> {
  try {
    return await check;
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    throw new HttpError(503, 'UNAVAILABLE', 'The credential cannot be checked now; repeat in a moment.');
  }
}

/** Refuses an operation without a credential, unless lease tokens are all that it needs. */
export function requireSignedIn({ viewer }: Authority, document: DocumentNode | null): void {
  if (!viewer.signedIn && !(document && hasOnlyRootFields(document, byLeaseToken))) throw unauthenticated();
}

const byLeaseToken = new Set(['extendLeases', 'reportResult', 'reportResults', 'appendAttemptEvents']);

/** Whether a request acts by the cookie of a page, which a browser sends along by itself. */
export const hasSession = (request: IncomingMessage): boolean =>
  request.headers.authorization === undefined && cookieOf(request) !== null;

/** The value of the session cookie. */
export function cookieOf(request: IncomingMessage): string | null {
  for (const pair of (request.headers.cookie ?? '').split(';')) {
    const [name, ...value] = pair.split('=');
    if (name?.trim() === sessionCookie) return value.join('=').trim();
  }
  return null;
}
