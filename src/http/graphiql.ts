import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gunzipSync, gzip } from 'node:zlib';
import { type AdmissionOptions, identify } from './admission.ts';
import { HttpError } from './http-error.ts';
import { signInPage } from './sign-in-page.ts';

const examples = new URL('../../schema/operations/', import.meta.url);

/** A page as it is sent: everything that it needs is in it. */
interface Page {
  gzipped: Buffer;
  policy: string;
  tag: string;
}

/**
 * Answers /graphiql: the query editor, to who is signed in. Its scripts come with the packages and inside the page, so
 * it needs no other server, and the browser executes nothing but them.
 */
export function createGraphiQL(
  admission: AdmissionOptions,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  let editor: Promise<Page> | null = null;
  let signIn: Promise<Page> | null = null;

  return async (request, response) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      throw new HttpError(405, 'METHOD_NOT_ALLOWED', 'GET the page.', { headers: { allow: 'GET, HEAD' } });
    }
    const signedIn = await isSignedIn(request, admission);
    // Nine megabytes, which most processes never send.
    const page = await (signedIn ? (editor ??= renderEditor()) : (signIn ??= toPage(signInPage)));
    sendPage(request, response, signedIn ? 200 : 401, page);
  };
}

async function isSignedIn(
  request: IncomingMessage,
  { credentials, rate }: AdmissionOptions,
): Promise<boolean> {
  try {
    return (await identify(request, credentials, rate)).viewer.signedIn;
  } catch (error) {
    if (error instanceof HttpError && error.status === 401) return false;
    throw error;
  }
}

async function renderEditor(): Promise<Page> {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
  return toPage(
    renderGraphiQL({
      title: 'Runplane',
      endpoint: '/graphql',
      defaultTabs: readExamples(),
      // A token that somebody types in stays in the page.
      shouldPersistHeaders: false,
    }),
  );
}

/** The files that are written to be read; others are what our own programs send. */
export const isExample = (file: string): boolean => /^example-.+\.graphql$/.test(file);

/** A tab for each file of examples; the run button chooses among the operations of a tab. */
const readExamples = (): { query: string }[] =>
  readdirSync(examples)
    .filter(isExample)
    .sort()
    .map((file) => ({ query: readFileSync(new URL(file, examples), 'utf8') }));

async function toPage(html: string): Promise<Page> {
  const script = html.slice(html.indexOf('<script>') + '<script>'.length, html.lastIndexOf('</script>'));
  const hash = createHash('sha256').update(script).digest('base64');
  const policy = [
    "default-src 'none'",
    `script-src 'sha256-${hash}'`,
    // The editor makes styles while it runs, and workers of scripts that the page has.
    "style-src 'unsafe-inline'",
    'worker-src blob:',
    'img-src data:',
    'font-src data:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
  return { gzipped: await promisify(gzip)(html), policy, tag: `"${hash}"` };
}

function sendPage(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  { gzipped, policy, tag }: Page,
): void {
  const zipped = (request.headers['accept-encoding'] ?? '').includes('gzip');
  response.setHeader('content-security-policy', policy);
  response.setHeader('x-content-type-options', 'nosniff');
  response.setHeader('referrer-policy', 'no-referrer');
  response.setHeader('cache-control', 'private, no-cache');
  response.setHeader('vary', 'Accept-Encoding, Cookie, Authorization');
  response.setHeader('etag', tag);
  if (status === 200 && request.headers['if-none-match'] === tag) {
    response.writeHead(304).end();
    return;
  }
  if (zipped) response.setHeader('content-encoding', 'gzip');
  response.writeHead(status, { 'content-type': 'text/html; charset=utf-8' });
  response.end(request.method === 'HEAD' ? undefined : zipped ? gzipped : gunzipSync(gzipped));
}
