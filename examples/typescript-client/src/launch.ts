import { request, succeeded } from './client';
import { LaunchDocument, UploadDocument } from './gql/graphql';

/** Launches one run. With the same key and the same input the first run is answered again. */
export async function launch(config: object, idempotencyKey: string) {
  const { launchRun } = await request(LaunchDocument, {
    input: { job: 'summarize', config, idempotencyKey },
  });
  return succeeded(launchRun);
}

/** One upload: a run for each document, all with one correlation id, each with a key of its own. */
export async function upload(correlationId: string, documents: object[]) {
  const launched = [];
  for (let first = 0; first < documents.length; first += 100) {
    const inputs = documents.slice(first, first + 100).map((config, i) => ({
      job: 'summarize',
      config,
      correlationId,
      idempotencyKey: `${correlationId}/${first + i}`,
    }));
    const { launchRuns } = await request(UploadDocument, { inputs });
    launched.push(...(launchRuns ?? []).map(succeeded));
  }
  return launched;
}
