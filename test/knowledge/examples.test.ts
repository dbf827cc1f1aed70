import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { PublishEventInput, PublishEventOutcome } from '../../src/intake/types.ts';
import { Pipeline } from './pipeline.ts';

const folder = new URL('../../examples/events/', import.meta.url);
const readme = readFileSync(new URL('README.md', folder), 'utf8');
const files = readdirSync(folder).filter((name) => name.endsWith('.jsonl'));

const readEvents = (file: string): PublishEventInput[] =>
  readFileSync(new URL(file, folder), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as PublishEventInput);

/** The rows of the README's table, which say what every file does. */
const promised = [
  ...readme.matchAll(/^\| `(\S+)`\s+\| (\d+)\s+\| (\d+)\s+\| (\d+)\s+\| (\d+)\s+\| (\d+)\s+\|/gm),
].map(([, file = '', ...numbers]) => {
  const [messages, events, runs, refusals, rejected] = numbers.map(Number);
  return { file, counts: { messages, events, runs, refusals, rejected } };
});

let pipeline: Pipeline;
beforeEach(async () => {
  pipeline = await Pipeline.start();
});
afterEach(() => pipeline.plane.stop());

const publish = async (file: string) => {
  const outcomes: PublishEventOutcome[] = await pipeline.publishAll(readEvents(file));
  const successes = outcomes.flatMap((outcome) => (outcome.kind === 'PublishEventSuccess' ? [outcome] : []));
  return {
    outcomes,
    counts: {
      messages: outcomes.length,
      events: new Set(successes.map(({ eventId }) => eventId)).size,
      runs: new Set(successes.flatMap(({ runIds }) => runIds)).size,
      refusals: successes.flatMap(({ refusals }) => refusals).length,
      rejected: outcomes.filter(({ kind }) => kind === 'InvalidInput').length,
    },
  };
};

test('the README has every file', () => {
  expect(promised.map(({ file }) => file).sort()).toEqual(files.sort());
});

describe.each(promised)('$file', ({ file, counts }) => {
  test('does what the README says', async () => {
    expect((await publish(file)).counts).toEqual(counts);
    expect(await pipeline.count('events')).toBe(counts.events);
    expect(
      await pipeline.plane.rows(`select status::text, count(*)::int from runplane.runs group by 1`),
    ).toEqual(counts.runs ? [{ status: 'COMPLETED', count: counts.runs }] : []);
  });
});

test('a trace is one question from the search to the answer', async () => {
  await publish('traces.jsonl');
  const traced = await pipeline.plane.rows(
    `select correlation_id, array_agg(event_type order by id) as types,
            (select count(*)::int from runplane.knowledge_chat_pairs p where p.correlation_id = e.correlation_id) as pairs
       from runplane.knowledge_events e group by 1 order by 1`,
  );
  expect(traced).toHaveLength(3);
  for (const row of traced) expect(row).toMatchObject({ pairs: 1 });
});

test('a large prompt arrives whole', async () => {
  const [event] = readEvents('large.jsonl');
  await publish('large.jsonl');
  if (!event) throw new Error('the file is empty');
  const { prompt } = event.payload as { prompt: string };
  expect(Buffer.byteLength(prompt)).toBeGreaterThan(200_000);
  expect((await pipeline.row<{ prompt: string }>('knowledge_chat_pairs')).prompt).toBe(prompt);
});

test('what is refused says why', async () => {
  const rejected = (await publish('malformed.jsonl')).outcomes;
  expect(rejected).toMatchObject([
    {
      kind: 'InvalidInput',
      field: 'payload.idempotency_key',
      message: 'payload.idempotency_key must be a string.',
    },
    { kind: 'InvalidInput', field: 'topic', message: 'topic has an empty token between its dots.' },
  ]);
  const refused = (await publish('refused.jsonl')).outcomes;
  expect(refused).toMatchObject([
    { refusals: [{ errors: [{ path: ['response'] }] }, { errors: [{ path: ['response'] }] }] },
    { refusals: [{ errors: [{ path: ['pipeline_id'] }, { path: ['usage', 'prompt_tokens'] }] }] },
  ]);
});
