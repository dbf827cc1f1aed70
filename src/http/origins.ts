import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIPv4 } from 'node:net';
import { HttpError } from './http-error.ts';

export interface OriginPolicy {
  /** Origins of other sites whose pages may use the API; with their own tokens, never with a session. */
  origins: ReadonlySet<string>;
  /** Without authentication who reaches the server is trusted: its own pages must have been loaded from this machine. */
  authenticationOff: boolean;
}

const refusedOrigin = (why: string): HttpError => new HttpError(403, 'CSRF_REFUSED', why);

/**
 * Refuses what a page of another site makes a browser send. Programs send neither Sec-Fetch-Site nor Origin, and are
 * known by their credential alone; pages of the listed origins may, but not with the session of this site.
 */
export function checkOrigin(request: IncomingMessage, policy: OriginPolicy, hasSession: boolean): void {
  const { origin } = request.headers;
  const site = request.headers['sec-fetch-site'];
  const silent = origin === undefined && site === undefined;
  const listed = origin !== undefined && policy.origins.has(origin);
  // A page that an attacker's name loaded from here reads from it without a word of where it is from.
  const mayBePage = !silent || request.method === 'GET' || request.method === 'HEAD';
  if (policy.authenticationOff && mayBePage && !listed && !isLoopback(hostOf(request))) {
    throw refusedOrigin('Without authentication, browsers may use this server under a loopback name only.');
  }
  if (silent) return;
  const own = site === undefined ? isOwnOrigin(request) : site === 'same-origin' || site === 'none';
  if (own || (listed && !hasSession)) return;
  throw refusedOrigin('Pages of other sites may not send requests to this server.');
}

/** Lets pages of listed origins read the answer, and answers their preflights. True: it is answered. */
export function answerCors(
  request: IncomingMessage,
  response: ServerResponse,
  { origins }: OriginPolicy,
): boolean {
  const { origin } = request.headers;
  if (origins.size > 0) response.setHeader('vary', 'Origin');
  const listed = origin !== undefined && origins.has(origin);
  if (listed) {
    response.setHeader('access-control-allow-origin', origin);
    response.setHeader('access-control-expose-headers', 'Retry-After, X-Request-Id');
  }
  if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined)
    return false;
  if (listed) {
    response.setHeader('access-control-allow-methods', 'GET, POST, PUT, DELETE');
    response.setHeader(
      'access-control-allow-headers',
      'Authorization, Content-Type, Last-Event-ID, X-GraphQL-Event-Stream-Token',
    );
    response.setHeader('access-control-max-age', '600');
  }
  response.writeHead(listed ? 204 : 403).end();
  return true;
}

/** For browsers that do not say where a request comes from. */
function isOwnOrigin({ headers }: IncomingMessage): boolean {
  return headers.origin !== undefined && URL.canParse(headers.origin)
    ? new URL(headers.origin).host === headers.host
    : false;
}

function hostOf({ headers }: IncomingMessage): string {
  const url = `http://${headers.host ?? 'localhost'}/`;
  return URL.canParse(url) ? new URL(url).hostname : '';
}

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '[::1]' || (isIPv4(host) && host.startsWith('127.'));
