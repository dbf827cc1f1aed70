import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, NetworkError } from 'graphql-sse';
import type { TypedDocumentString } from './gql/graphql';

const server = process.env.RUNPLANE_URL ?? 'http://127.0.0.1:4000';
const url = `${server.replace(/\/graphql$/, '')}/graphql`;
const headers = { authorization: `Bearer ${process.env.RUNPLANE_TOKEN}` };

/** Sends an operation until it is answered: every mutation here carries what makes it safe to repeat. */
export async function request<Data extends object, Variables>(
  document: TypedDocumentString<Data, Variables>,
  variables: Variables,
): Promise<Data> {
  for (let attempt = 1; ; attempt += 1) {
    const answer = await send<Data>({ query: document.toString(), variables });
    if (answer) return answer;
    if (attempt === 10) throw new Error('The server does not answer.');
    await sleep(Math.min(100 * 2 ** attempt, 5_000) * Math.random());
  }
}

/** Longer than a claim waits. */
const answerWithinMs = 30_000;

/** Null where the same request may succeed when it is repeated. */
async function send<Data extends object>(body: object): Promise<Data | null> {
  // When a server is killed a request can be lost without an error: the timer ends the wait, and keeps the process till then.
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), answerWithinMs);
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: late.signal,
  }).catch(() => null);
  const answer: unknown = await response?.json().catch(() => ({}));
  clearTimeout(timer);
  if (!response || response.status === 429 || response.status >= 500) return null;
  const { data, errors } = answer as { data?: Data; errors?: object[] };
  if (errors) throw new Error(JSON.stringify(errors));
  if (!data || Object.values(data).flat().some(isUnavailable)) return null;
  return data;
}

const isUnavailable = (result: { __typename?: string } | null) => result?.__typename === 'Unavailable';

/** What a mutation did. Its expected failures, the members of its union with a message, are thrown. */
export function succeeded<Result extends { __typename: string }>(
  result: Result | null,
): Exclude<Result, { message: string }> {
  if (!result || 'message' in result) throw new Error(`${result?.__typename}: ${result?.message}`);
  return result as Exclude<Result, { message: string }>;
}

const isTransient = ({ extensions }: { extensions?: { code?: unknown } }) =>
  extensions?.code === 'SLOW_CONSUMER' || extensions?.code === 'UNAVAILABLE';

// graphql-sse repeats a lost stream with the variables it began with; going on after the last cursor is done below.
const streams = createClient({ url, headers, retryAttempts: 0 });

/** The messages of a subscription until the server completes it; a lost stream goes on after the last cursor. */
export async function* follow<Data extends Record<string, { cursor: string }>, Variables extends object>(
  document: TypedDocumentString<Data, Variables & { after?: string | null }>,
  variables: Variables & { after: string },
): AsyncGenerator<Data[keyof Data]> {
  let { after } = variables;
  for (;;) {
    try {
      const request = { query: document.toString(), variables: { ...variables, after } };
      let isComplete = true;
      for await (const { data, errors } of streams.iterate<Data>(request)) {
        if (errors && !errors.every(isTransient)) throw new Error(JSON.stringify(errors));
        isComplete = !errors;
        for (const message of Object.values(data ?? {}) as Data[keyof Data][]) {
          after = message.cursor;
          yield message;
        }
      }
      if (isComplete) return;
    } catch (error) {
      const lost = error instanceof NetworkError && (error.response?.status ?? 500) >= 500;
      if (!lost) throw error;
    }
    await sleep(500);
  }
}
