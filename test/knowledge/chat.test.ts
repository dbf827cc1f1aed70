import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hash, lineageSql, Pipeline, topics } from './pipeline.ts';

let pipeline: Pipeline;
beforeEach(async () => {
  pipeline = await Pipeline.start();
});
afterEach(() => pipeline.plane.stop());

const chat = {
  pipeline_id: 'support-bot',
  correlation_id: 'conversation-7',
  idempotency_key: 'chat-7-1',
  model: 'gpt-5.2',
  prompt: 'Wie lange ist die Frist?',
  response: 'Vierzehn Tage. 📅 十四天。',
  messages: [{ role: 'user', content: 'Wie lange ist die Frist?' }],
  usage: { prompt_tokens: 120, completion_tokens: 30 },
  requested_at: 1_767_225_600_000,
  payload_json: '{"channel":"web","tags":["愛",1]}',
  tenant: 'acme',
};

describe('a chat', () => {
  test('is audited, paired and paid for once', async () => {
    const event = await pipeline.publish(topics.chat, chat);
    expect(event.refusals).toEqual([]);
    expect(await pipeline.statuses()).toEqual({
      knowledge_chat_pair_materialize: 'COMPLETED',
      knowledge_chat_persist: 'COMPLETED',
    });
    expect(await pipeline.row('knowledge_chat_audit')).toMatchObject({
      message_key: 'chat-7-1',
      pipeline_id: 'support-bot',
      correlation_id: 'conversation-7',
      idempotency_key: 'chat-7-1',
      model: 'gpt-5.2',
      prompt: chat.prompt,
      response: chat.response,
    });
    const { payload_json } = await pipeline.row<{ payload_json: object }>('knowledge_chat_audit');
    expect(payload_json).toEqual({
      messages: chat.messages,
      usage: chat.usage,
      requested_at: chat.requested_at,
      payload_json: { channel: 'web', tags: ['愛', 1] },
      tenant: 'acme',
    });
    expect(await pipeline.row('knowledge_chat_pairs')).toMatchObject({
      pair_id: hash('pair:conversation-7:chat-7-1'),
      correlation_id: 'conversation-7',
      pipeline_id: 'support-bot',
      llm_model: 'gpt-5.2',
      prompt: chat.prompt,
      response: chat.response,
      prompt_tokens: 120,
      completion_tokens: 30,
      total_tokens: 150,
      payload_json: { channel: 'web', tags: ['愛', 1] },
    });
    expect(
      await pipeline.plane.rows(
        `select t.step, u.model, u.input_tokens, u.output_tokens, u.llm_cost, u.response_id, u.at
           from runplane.usage u join runplane.tasks t on t.id = u.task_id`,
      ),
    ).toEqual([
      {
        step: 'record',
        model: 'gpt-5.2',
        input_tokens: 120,
        output_tokens: 30,
        llm_cost: null,
        response_id: event.publicId,
        at: new Date(chat.requested_at),
      },
    ]);
  });

  test('without a key is known by its event', async () => {
    const event = await pipeline.publish(topics.chat, { pipeline_id: 'p', prompt: 'q', response: 'a' });
    expect(await pipeline.row('knowledge_chat_audit')).toMatchObject({
      message_key: event.publicId,
      correlation_id: event.publicId,
      idempotency_key: null,
      payload_json: {},
    });
    expect(await pipeline.row('knowledge_chat_pairs')).toMatchObject({
      pair_id: hash(`pair:${event.publicId}:${event.publicId}`),
      total_tokens: null,
      payload_json: {},
    });
    expect(await pipeline.count('usage')).toBe(0);
  });

  test('takes key and correlation id from the envelope when the message has none', async () => {
    const message = { pipeline_id: 'p', prompt: 'q', response: 'a', idempotency_key: null };
    await pipeline.publish(topics.chat, message, { idempotencyKey: 'k', correlationId: 'c' });
    expect(await pipeline.row('knowledge_chat_audit')).toMatchObject({
      message_key: 'k',
      correlation_id: 'c',
    });
    expect(await pipeline.row('knowledge_chat_pairs')).toMatchObject({ pair_id: hash('pair:c:k') });
  });

  test('delivered again leaves what one delivery leaves', async () => {
    const first = await pipeline.publish(topics.chat, chat);
    expect(await pipeline.publish(topics.chat, chat)).toMatchObject({
      eventId: first.eventId,
      replayed: true,
    });
    // A producer that forgot its key sends two events, and the key of the message is what counts.
    await pipeline.publish(topics.chat, chat, { idempotencyKey: 'another key' });
    expect(await pipeline.count('knowledge_chat_audit')).toBe(1);
    expect(await pipeline.count('knowledge_chat_pairs')).toBe(1);
    expect(await pipeline.count('events')).toBe(2);
    expect(
      await pipeline.plane.rows(`select count(*)::int from runplane.runs where status <> 'COMPLETED'`),
    ).toEqual([{ count: 0 }]);
  });

  test('links the dataset to the record that it was made from', async () => {
    await pipeline.publish(topics.chat, chat);
    expect(await pipeline.plane.rows(lineageSql)).toEqual([
      { asset: 'chat_pair_record', partition: 'conversation-7', step: 'record', input: null },
      { asset: 'chat_pair_dataset', partition: 'conversation-7', step: 'dataset', input: 'chat_pair_record' },
    ]);
  });

  test('brings its own price', async () => {
    await pipeline.publish(topics.chat, {
      ...chat,
      usage: { ...chat.usage, total_tokens: 999, cost: '0.000125' },
    });
    expect(await pipeline.row('usage')).toMatchObject({ llm_cost: '0.000125000000' });
    expect(await pipeline.row('knowledge_chat_pairs')).toMatchObject({ total_tokens: 999 });
  });

  test('of the audit alone is paid for by the audit', async () => {
    await pipeline.launch('knowledge_chat_persist', chat);
    expect(await pipeline.row('usage')).toMatchObject({ input_tokens: 120, output_tokens: 30 });
  });
});
