import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { actor } from '../support/control-plane.ts';
import { Pipeline, topics } from './pipeline.ts';

let pipeline: Pipeline;
beforeEach(async () => {
  pipeline = await Pipeline.start();
});
afterEach(() => pipeline.plane.stop());

describe('a message that a job refuses', () => {
  test('is an event without runs, with the reasons of each route', async () => {
    const event = await pipeline.publish(topics.chat, { prompt: 'Hello?' });
    const missing = (field: string) => ({
      reason: 'MISSING_REQUIRED_FIELD',
      path: [field],
      message: `config.${field} is required.`,
    });
    const errors = [missing('pipeline_id'), missing('response')];
    expect(event.runIds).toEqual([]);
    expect(event.refusals).toMatchObject([
      { route: 'knowledge_chat_pair_materialize', errors },
      { route: 'knowledge_chat_persist', errors },
    ]);
    expect(await pipeline.count('events')).toBe(1);
  });

  test.each([
    ['a missing pipeline', { prompt: 'x' }, ['pipeline_id']],
    ['a pipeline that is a number', { pipeline_id: 7 }, ['pipeline_id']],
    [
      'tokens that are text',
      { pipeline_id: 'p', usage: { prompt_tokens: '12' } },
      ['usage', 'prompt_tokens'],
    ],
    ['negative tokens', { pipeline_id: 'p', usage: { total_tokens: -1 } }, ['usage', 'total_tokens']],
    ['a cost that is a float', { pipeline_id: 'p', usage: { cost: 0.1 } }, ['usage', 'cost']],
    ['messages that are no list', { pipeline_id: 'p', messages: 'hi' }, ['messages']],
  ])('because of %s', async (_, payload, path) => {
    const event = await pipeline.publish(topics.retrieve, payload);
    expect(event.refusals).toMatchObject([{ route: 'knowledge_retrieve', errors: [{ path }] }]);
  });

  test('because it is no object', async () => {
    const event = await pipeline.publish(topics.compose, ['not', 'a', 'message']);
    expect(event.refusals).toMatchObject([{ route: 'knowledge_compose' }]);
  });
});

describe('content that a retry cannot mend', () => {
  const message = { pipeline_id: 'p', correlation_id: 'c', prompt: 'q', response: 'a' };
  const failed =
    'select step, error_code, error_kind::text, error_message from runplane.tasks where error_code is not null order by id';

  test('hidden in a payload fails at once, wherever it is read', async () => {
    await pipeline.publish(topics.chat, { ...message, payload_json: '{"text":"\\u0000"}' });
    await pipeline.publish(topics.embedding, { ...message, payload_json: '[12345678901234567890]' });
    expect(await pipeline.statuses()).toEqual({
      knowledge_chat_pair_materialize: 'FAILED',
      knowledge_chat_persist: 'FAILED',
      knowledge_embedding: 'FAILED',
    });
    expect(await pipeline.plane.rows('select distinct status::text, number from runplane.attempts')).toEqual([
      { status: 'FAILED', number: 1 },
    ]);
    expect(await pipeline.count('knowledge_chat_audit')).toBe(0);
  });

  test('from a job without a schema fails at once', async () => {
    await pipeline.plane.job('careless', ['knowledge_event_record', 'knowledge_event_dataset']);
    await pipeline.launch('careless', { pipeline_id: 'p' });
    expect(await pipeline.plane.rows(failed)).toMatchObject([
      {
        step: 'knowledge_event_record',
        error_code: 'INVALID_MESSAGE',
        error_message: 'config.event_type is required.',
      },
      { step: 'knowledge_event_dataset', error_code: 'INVALID_MESSAGE' },
    ]);
    expect(await pipeline.count('attempts')).toBe(2);
  });

  test('that only the database refuses fails at once', async () => {
    await pipeline.plane.job('unknown_type', ['knowledge_event_dataset']);
    const record = {
      event_id: 'x',
      event_type: 'dreaming',
      correlation_id: 'c',
      pipeline_id: 'p',
      payload_json: {},
    };
    await pipeline.launch('unknown_type', record);
    expect(await pipeline.plane.rows(failed)).toMatchObject([{ error_code: 'INVALID_MESSAGE' }]);
    expect(await pipeline.count('attempts')).toBe(1);
  });
});

test('a route that is switched off launches nothing, and the other one is not asked', async () => {
  const { configuration } = pipeline.plane.services;
  const route = {
    name: 'knowledge_chat_persist',
    topic: topics.chat,
    job: 'knowledge_chat_persist',
    enabled: false,
  };
  await configuration.saveRoute(route, actor);
  await pipeline.publish(topics.chat, { pipeline_id: 'p', prompt: 'q', response: 'a' });
  expect(await pipeline.statuses()).toEqual({ knowledge_chat_pair_materialize: 'COMPLETED' });
});
