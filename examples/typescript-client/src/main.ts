import { randomUUID } from 'node:crypto';
import { launch, upload } from './launch';
import { cancel, replayFailures } from './operate';
import { createSummarizer } from './summarizer';
import { attemptEvents, changeLogCursor, counts, outcome, progress, runsOf, statusChanges } from './watch';
import { work } from './worker';

const { summarize, repair } = createSummarizer();
const stop = new AbortController();
const worker = work(summarize, stop.signal);
worker.catch((error) => {
  console.error(error);
  process.exit(1);
});

console.log('One run');
const one = await launch({ text: 'Runplane keeps work. It loses none.' }, randomUUID());
await Promise.all([
  (async () => {
    for await (const { step, fromStatus, toStatus } of statusChanges(one.runId, one.cursor))
      console.log(`  ${step}: ${fromStatus ?? 'new'} -> ${toStatus}`);
  })(),
  (async () => {
    for await (const { type, data } of attemptEvents(one.runId, one.cursor))
      console.log(`  ${type}: ${(data as { content: string }).content}`);
  })(),
]);
const result = await outcome(one.runId);
const { summary } = result?.taskOfStep?.output as { summary: string };
console.log(`  summary: ${summary}`);
console.log(`  ${result?.status}, ${result?.usage?.totalTokens} tokens, ${result?.cost?.total} USD`);

console.log('An upload of 300 documents');
const correlationId = `upload-${randomUUID()}`;
const documents = Array.from({ length: 300 }, (_, i) => ({
  text: `Document ${i}. It has a second sentence.`,
  format: i % 100 === 0 ? 'pdf' : 'text',
}));
const launched = await upload(correlationId, documents);
const cursor = launched[0]?.cursor ?? '';
for await (const over of progress(correlationId, documents.length, cursor))
  console.log(`  ${over} of ${documents.length} are over`);
const tasks = await counts(correlationId);
console.log(`  ${tasks?.completed} completed, ${tasks?.failed} failed`);
repair();
const now = await changeLogCursor();
const replayed = await replayFailures('CONVERTER_BROKEN');
for await (const over of progress(correlationId, replayed, now))
  console.log(`  ${over} of ${replayed} that were replayed are over`);
let completed = 0;
for await (const { status } of runsOf(correlationId)) if (status === 'COMPLETED') completed += 1;
console.log(`  ${completed} runs are COMPLETED`);

console.log('A run that is cancelled');
const long = await launch({ format: 'video' }, randomUUID());
for await (const { toStatus } of statusChanges(long.runId, long.cursor)) {
  console.log(`  ${toStatus}`);
  if (toStatus === 'PROCESSING') await cancel(long.runId, 'It takes too long.');
}

console.log('A worker that stops');
const open = await launch({ format: 'video' }, randomUUID());
for await (const { toStatus } of statusChanges(open.runId, open.cursor)) {
  console.log(`  ${toStatus}`);
  // Handed back, it would wait for another worker.
  if (toStatus === 'ENQUEUED' && stop.signal.aborted) await cancel(open.runId, 'The example is over.');
  if (toStatus === 'PROCESSING') stop.abort();
}
await worker;
console.log('The worker has stopped');
