import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { operations } from '../../src/knowledge/operations.ts';
import { hash, lineageSql, Pipeline } from './pipeline.ts';

let pipeline: Pipeline;
beforeEach(async () => {
  pipeline = await Pipeline.start();
});
afterEach(() => pipeline.plane.stop());

const message = {
  pipeline_id: '検索パイプライン',
  correlation_id: 'q-42',
  model: 'bge-m3',
  prompt: '什么是向量数据库？🧭',
  usage: { prompt_tokens: 12, total_tokens: 12 },
  payload_json: '{"dimensions":1024,"note":"嵌入"}',
};

describe.each(operations.map(({ type, topic }) => ({ type, topic })))('$type', ({ type, topic }) => {
  test('is recorded, stored, materialized and paid for once', async () => {
    const event = await pipeline.publish(topic, message);
    expect(event.refusals).toEqual([]);
    expect(await pipeline.statuses()).toEqual({ [`knowledge_${type}`]: 'COMPLETED' });
    expect(await pipeline.row('knowledge_events')).toMatchObject({
      event_id: hash(`${type}:q-42`),
      event_type: type,
      correlation_id: 'q-42',
      pipeline_id: '検索パイプライン',
      llm_model: 'bge-m3',
      payload_json: { dimensions: 1024, note: '嵌入' },
    });
    expect(await pipeline.plane.rows(lineageSql)).toEqual([
      { asset: `${type}_record`, partition: 'q-42', step: 'record', input: null },
      { asset: `${type}_dataset`, partition: 'q-42', step: 'dataset', input: `${type}_record` },
    ]);
    expect(await pipeline.row('usage')).toMatchObject({
      model: 'bge-m3',
      input_tokens: 12,
      output_tokens: null,
      response_id: event.publicId,
      llm_cost: null,
    });
  });

  test('has its key in its id', async () => {
    await pipeline.publish(topic, { ...message, idempotency_key: 'part-1' });
    await pipeline.publish(topic, { ...message, idempotency_key: 'part-2' });
    expect(await pipeline.plane.rows('select event_id from runplane.knowledge_events order by id')).toEqual([
      { event_id: hash(`${type}:q-42:part-1`) },
      { event_id: hash(`${type}:q-42:part-2`) },
    ]);
  });
});

test('of one correlation id are linked to each other, in whatever order their messages come', async () => {
  for (const type of ['compose', 'embedding', 'retrieve']) {
    await pipeline.publish(`pipeline.knowledge.${type}`, message);
    await pipeline.publish(`pipeline.knowledge.${type}`, { ...message, correlation_id: 'other' });
  }
  const inputs = `
    select distinct a.key as made, i.key as from from runplane.materialization_inputs x
      join runplane.materializations m on m.id = x.materialization_id join runplane.assets a on a.id = m.asset_id
      join runplane.materializations n on n.id = x.input_id and n.correlation_id = m.correlation_id
      join runplane.assets i on i.id = n.asset_id order by 1`;
  expect(await pipeline.plane.rows(inputs)).toEqual([
    { made: 'compose_dataset', from: 'compose_record' },
    { made: 'compose_record', from: 'retrieve_dataset' },
    { made: 'embedding_dataset', from: 'embedding_record' },
    { made: 'retrieve_dataset', from: 'retrieve_record' },
    { made: 'retrieve_record', from: 'embedding_dataset' },
  ]);
  expect(await pipeline.count('materialization_inputs')).toBe(10);
});

describe('any operation', () => {
  const [{ topic }] = operations as readonly [(typeof operations)[number]];

  test('with one correlation id and no key is stored once', async () => {
    await pipeline.publish(topic, message);
    await pipeline.publish(topic, { ...message, prompt: 'again' });
    expect(await pipeline.count('events')).toBe(2);
    expect(await pipeline.row('knowledge_events')).toMatchObject({ payload_json: { dimensions: 1024 } });
    expect(await pipeline.count('materializations')).toBe(4);
    expect(await pipeline.count('usage')).toBe(2);
  });

  test('has the id of its event as correlation id when it names none', async () => {
    const { correlation_id: _, payload_json: __, ...rest } = message;
    const event = await pipeline.publish(topic, rest);
    expect(await pipeline.row('knowledge_events')).toMatchObject({
      event_id: hash(`embedding:${event.publicId}`),
      correlation_id: event.publicId,
      payload_json: { prompt: message.prompt, usage: message.usage },
    });
  });

  test.each([
    ['text that is no JSON', 'plain, not {json', 'plain, not {json'],
    ['the text of a number', '17', 17],
    ['an object', { a: [1, null] }, { a: [1, null] }],
  ])('keeps as payload %s', async (_, payload_json, stored) => {
    await pipeline.publish(topic, { ...message, payload_json });
    expect(await pipeline.row('knowledge_events')).toMatchObject({ payload_json: stored });
  });

  test('cannot be filed under another operation', async () => {
    await pipeline.publish(topic, { ...message, event_type: 'compose' });
    expect(await pipeline.row('knowledge_events')).toMatchObject({ event_type: 'embedding' });
    await expect(
      pipeline.launch('knowledge_embedding', { ...message, event_type: 'compose' }),
    ).rejects.toThrow('RunConfigValidationInvalid');
  });
});
