/** A failure that may pass: worth another try. */
export class TryLater extends Error {
  /** What the server asks to wait. */
  readonly retryAfterMs: number | null;
  /** Whether only streams are refused, and pages are not. */
  readonly onlyStreams: boolean;

  constructor(
    message: string,
    more: { retryAfterMs?: number | null; code?: string | null; cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.retryAfterMs = more.retryAfterMs ?? null;
    this.onlyStreams = more.code === 'TOO_MANY_STREAMS';
  }
}

/** A failure that another try would only repeat. */
export class Refused extends Error {
  readonly code: string | null;
  /** Where to restart, when the cursor is expired. */
  readonly restartFrom: string | null;

  constructor(message: string, code: string | null, restartFrom: string | null = null) {
    super(message);
    this.code = code;
    this.restartFrom = restartFrom;
  }
}

interface Answer {
  data?: unknown;
  errors?: { message?: string; extensions?: { code?: string; cursor?: string } }[];
}

/** The codes that docs/errors.md calls retryable. */
export const retryableCodes: ReadonlySet<string> = new Set([
  'INTERNAL_SERVER_ERROR',
  'SLOW_CONSUMER',
  'TOO_MANY_REQUESTS',
  'TOO_MANY_STREAMS',
  'UNAVAILABLE',
]);

/** The data of a GraphQL answer; throws its error. */
export function dataOf(text: string): unknown {
  const answer = parse(text);
  if (answer === null) throw new TryLater('The answer cannot be read.');
  const error = errorOf(answer, null);
  if (error) throw error;
  return answer.data;
}

/** What an answer with a status of failure means. */
export function failureOf(response: Response, text: string): Error {
  const retryAfterMs = retryAfter(response.headers.get('retry-after'));
  const error = errorOf(parse(text) ?? {}, retryAfterMs);
  if (error) return error;
  const { status } = response;
  const message = `${response.url} answered with HTTP ${status}.`;
  const passes = status >= 500 || status === 408 || status === 425 || status === 429;
  return passes ? new TryLater(message, { retryAfterMs }) : new Refused(message, null);
}

function errorOf({ errors }: Answer, retryAfterMs: number | null): Error | null {
  const [error] = errors ?? [];
  if (error === undefined) return null;
  const { code = null, cursor = null } = error.extensions ?? {};
  const message = error.message ?? 'The server gave an error without a message.';
  return code !== null && retryableCodes.has(code)
    ? new TryLater(message, { code, retryAfterMs })
    : new Refused(message, code, cursor);
}

function parse(text: string): Answer | null {
  try {
    const answer: unknown = JSON.parse(text);
    return typeof answer === 'object' && answer !== null && !Array.isArray(answer) ? answer : null;
  } catch {
    // A proxy in between, or what was cut.
    return null;
  }
}

/** Seconds, or a date. */
function retryAfter(header: string | null): number | null {
  if (header === null) return null;
  const ms = /^\d+$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}
