import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from '../graphql/client.ts';
import { Pipeline, topics } from './pipeline.ts';

let pipeline: Pipeline;
beforeAll(async () => {
  pipeline = await Pipeline.start();
});
afterAll(() => pipeline.plane.stop());

const query = `{ trace(correlationId: "q-42") { knowledgeRecords { nodes { id table at eventId data } } } ingestStreams { stream } }`;

test('a trace shows what the pipeline stored, and who may not see payloads gets no data', async () => {
  const embedding = 'pipeline.knowledge.embedding';
  const message = { pipeline_id: 'p', correlation_id: 'q-42', model: 'm', prompt: 'a question', usage: {} };
  await pipeline.publish(embedding, { ...message, usage: { prompt_tokens: 1, total_tokens: 1 } });
  await pipeline.publish(topics.chat, { ...message, idempotency_key: 'k', response: 'an answer' });
  await pipeline.publish(embedding, { ...message, correlation_id: 'other' });

  const { trace, ingestStreams } = await new Client(pipeline.plane).query(query);
  const records = trace.knowledgeRecords.nodes;
  expect(records.map(({ table }: { table: string }) => table).sort()).toEqual([
    'knowledge_chat_audit',
    'knowledge_chat_pairs',
    'knowledge_events',
  ]);
  expect(records).toContainEqual({
    id: expect.stringMatching(/^knowledge_chat_pairs:\d+$/),
    table: 'knowledge_chat_pairs',
    at: expect.any(String),
    eventId: null,
    data: expect.objectContaining({ correlation_id: 'q-42', prompt: 'a question', response: 'an answer' }),
  });
  const [event] = await pipeline.plane.rows<{ id: string }>(
    `select event_id as id from runplane.knowledge_events where correlation_id = 'q-42'`,
  );
  expect(records).toContainEqual(expect.objectContaining({ table: 'knowledge_events', eventId: event?.id }));
  expect(ingestStreams).toEqual([]);

  const hidden = (await new Client(pipeline.plane, ['READ']).query(query)).trace.knowledgeRecords.nodes;
  expect(hidden).toEqual(records.map((record: object) => ({ ...record, data: null })));
});
