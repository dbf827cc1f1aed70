import { follow, request } from './client';
import {
  ChangeLogCursorDocument,
  CountsDocument,
  OutcomeDocument,
  type RunStatus,
  RunsOfUploadDocument,
  type RunsOfUploadQuery,
  WatchAttemptsDocument,
  WatchRunDocument,
  WatchUploadDocument,
} from './gql/graphql';

/** Every status change of a run's tasks, from its launch until it is over. */
export async function* statusChanges(runId: string, after: string) {
  const seen = new Set<string>();
  for await (const { changes } of follow(WatchRunDocument, { runId, after }))
    for (const change of changes) {
      if (!seen.has(change.id)) yield change;
      seen.add(change.id);
    }
}

/** What the run's agents tell while they work. */
export async function* attemptEvents(runId: string, after: string) {
  const seen = new Set<string>();
  for await (const { events } of follow(WatchAttemptsDocument, { runId, after }))
    for (const event of events) {
      if (!seen.has(event.id)) yield event;
      seen.add(event.id);
    }
}

/** How many runs of an upload are over, each time that changes, until so many are. */
export async function* progress(correlationId: string, total: number, after: string) {
  const over = new Set<string>();
  const isOver = new Set<RunStatus>(['COMPLETED', 'FAILED', 'CANCELLED']);
  for await (const { changes } of follow(WatchUploadDocument, { correlationId, after })) {
    const before = over.size;
    for (const { runId, toStatus } of changes)
      if (isOver.has(toStatus)) over.add(runId);
      else over.delete(runId);
    if (over.size !== before) yield over.size;
    if (over.size === total) return;
  }
}

/** Where the change log ends now. */
export async function changeLogCursor() {
  return (await request(ChangeLogCursorDocument, {})).changeLogCursor;
}

/** How an upload stands, at one look. */
export async function counts(correlationId: string) {
  const { taskCounts } = await request(CountsDocument, { correlationId });
  return taskCounts;
}

export async function outcome(runId: string) {
  const { run } = await request(OutcomeDocument, { runId });
  return run;
}

/** All runs of an upload, page by page. */
export async function* runsOf(correlationId: string) {
  let after: string | null = null;
  do {
    const { runs }: RunsOfUploadQuery = await request(RunsOfUploadDocument, { correlationId, after });
    yield* runs?.nodes ?? [];
    after = runs?.pageInfo.hasNextPage ? runs.pageInfo.endCursor : null;
  } while (after);
}
