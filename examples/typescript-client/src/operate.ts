import { request, succeeded } from './client';
import { CancelRunDocument, DeadLettersDocument, ReplayDeadLettersDocument } from './gql/graphql';

export async function cancel(runId: string, reason: string) {
  const { cancelRun } = await request(CancelRunDocument, { runId, reason });
  // When it is repeated, the first one may have done it.
  const isDone = cancelRun?.__typename === 'IllegalState' && cancelRun.status === 'CANCELLED';
  if (!isDone) succeeded(cancelRun);
}

/** Tasks that failed for good with this error are done again. */
export async function replayFailures(errorCode: string) {
  const { deadLetters } = await request(DeadLettersDocument, { errorCode });
  const ids = deadLetters?.nodes.map(({ id }) => id) ?? [];
  const { replayDeadLetters } = await request(ReplayDeadLettersDocument, { ids });
  succeeded(replayDeadLetters);
  return ids.length;
}
