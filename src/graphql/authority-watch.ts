import type { Authority } from '../domain/credential.ts';
import type { GraphQLContext } from './context.ts';
import { unauthenticated } from './errors.ts';

/** How often a stream that is silent looks. */
export const silentMs = 60_000;

/** Looks at a credential from time to time, until it ends or nobody wants to know any more. */
export function watchAuthority(authority: Authority, everyMs: number, onEnd: () => void): () => void {
  const timer = setInterval(() => {
    authority.stands().then(
      (stands) => {
        if (stands) return;
        clearInterval(timer);
        onEnd();
      },
      // Nobody can say now, and nothing is shown meanwhile: the next look asks again.
      () => {},
    );
  }, everyMs);
  return () => clearInterval(timer);
}

/** Together with what is remembered of a credential these are less than 30 s. */
const waitingMs = 4_000;

/**
 * Runs what may wait for something to answer. The wait ends, with an error and with nothing given out, when the client's
 * credential ends meanwhile; it counts as a client that left.
 */
export async function whileAuthorized<Answer>(
  context: GraphQLContext,
  waitSeconds: number | null | undefined,
  run: (gone: AbortSignal) => Promise<Answer>,
  isNothing: (answer: Answer) => boolean,
): Promise<Answer> {
  const left = context.signal();
  if (!waitSeconds) return run(left);
  const ended = new AbortController();
  const stop = watchAuthority(context.authority, waitingMs, () => ended.abort());
  try {
    const answer = await run(AbortSignal.any([left, ended.signal]));
    if (ended.signal.aborted && isNothing(answer)) throw unauthenticated();
    return answer;
  } finally {
    stop();
  }
}
