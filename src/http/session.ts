import type { IncomingMessage, ServerResponse } from 'node:http';
import { type AdmissionOptions, addressOf } from './admission.ts';
import {
  bearerToken,
  cookieOf,
  orThrowUnavailable,
  sessionCookie,
  unauthenticated,
} from './authentication.ts';
import { type BodyRoom, readJsonBody } from './body.ts';
import { HttpError } from './http-error.ts';
import { checkOrigin } from './origins.ts';

/**
 * Signs a page in and out: a token becomes a cookie that scripts cannot read. The token comes in a header or a JSON body,
 * never in the URL, which is kept in histories and logs.
 */
export async function answerSession(
  request: IncomingMessage,
  response: ServerResponse,
  { credentials, origins, rate, strangersBodies }: AdmissionOptions,
): Promise<void> {
  // Nobody's page signs somebody in or out of ours.
  checkOrigin(request, origins, true);
  // Where nobody is asked for a credential, nobody needs a session.
  const needed = !credentials.none.viewer.signedIn;
  if (needed) rate.take(addressOf(request));
  switch (request.method) {
    case 'POST': {
      const token = bearerToken(request) ?? (await tokenInBody(request, strangersBodies));
      const session = await orThrowUnavailable(credentials.openSession(token));
      if (session) setCookie(request, response, session.cookie, session.seconds);
      else if (needed) throw unauthenticated();
      break;
    }
    case 'DELETE': {
      const cookie = cookieOf(request);
      if (cookie !== null) await orThrowUnavailable(credentials.closeSession(cookie));
      setCookie(request, response, '', 0);
      break;
    }
    default:
      response.setHeader('allow', 'POST, DELETE');
      throw new HttpError(405, 'METHOD_NOT_ALLOWED', 'POST opens a session with a token, DELETE closes it.');
  }
  response.writeHead(204, { 'cache-control': 'no-store' });
  response.end();
}

async function tokenInBody(request: IncomingMessage, room: BodyRoom): Promise<string> {
  const { body } = await readJsonBody(request, room);
  if (typeof body === 'object' && body !== null && 'token' in body && typeof body.token === 'string') {
    return body.token;
  }
  throw new HttpError(400, 'BAD_REQUEST', 'Send the token as Authorization: Bearer, or as { "token": … }.');
}

function setCookie(request: IncomingMessage, response: ServerResponse, value: string, seconds: number): void {
  const attributes = ['Path=/', 'HttpOnly', 'SameSite=Strict', `Max-Age=${seconds}`];
  if (isSecure(request)) attributes.push('Secure');
  response.setHeader('set-cookie', `${sessionCookie}=${value}; ${attributes.join('; ')}`);
}

/** Whether the client came by TLS, as the proxy in front says; to believe it costs nothing but a cookie. */
function isSecure(request: IncomingMessage): boolean {
  const [proto] = String(request.headers['x-forwarded-proto'] ?? '').split(',');
  return (
    proto?.trim().toLowerCase() === 'https' ||
    /(^|;|,)\s*proto="?https/i.test(String(request.headers.forwarded ?? ''))
  );
}
