import type { IncomingMessage } from 'node:http';
import type { Authority, Credentials } from '../domain/credential.ts';
import { authenticate, hasSession } from './authentication.ts';
import type { BodyRoom } from './body.ts';
import { HttpError } from './http-error.ts';
import { checkOrigin, type OriginPolicy } from './origins.ts';
import type { RequestRate } from './request-rate.ts';

export interface AdmissionOptions {
  credentials: Credentials;
  origins: OriginPolicy;
  rate: RequestRate;
  /** Of who shows no credential, or not yet. */
  strangersBodies: BodyRoom;
}

/** What a caller without a credential is counted by. */
export const addressOf = ({ socket }: IncomingMessage): string => `address ${socket.remoteAddress}`;

/** Who sends a request, when they may send one at all. Comes before anything of it is read. */
export async function admit(
  request: IncomingMessage,
  { credentials, origins, rate }: AdmissionOptions,
): Promise<Authority> {
  if (!URL.canParse(`http://${request.headers.host ?? 'localhost'}/`)) {
    throw new HttpError(400, 'BAD_REQUEST', 'The Host header names no host.');
  }
  checkOrigin(request, origins, hasSession(request));
  return identify(request, credentials, rate);
}

/** Who sends a request, counted as one of theirs. */
export async function identify(
  request: IncomingMessage,
  credentials: Credentials,
  rate: RequestRate,
): Promise<Authority> {
  const address = addressOf(request);
  let authority: Authority;
  try {
    authority = await authenticate(request, credentials);
  } catch (error) {
    // Guessing credentials is no faster than using one.
    if (error instanceof HttpError && error.status === 401) rate.take(address);
    throw error;
  }
  const { signedIn, tokenId } = authority.viewer;
  if (tokenId !== null) rate.take(tokenId);
  else if (!signedIn) rate.take(address);
  return authority;
}
