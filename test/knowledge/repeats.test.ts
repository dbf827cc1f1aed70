import { afterEach, expect, test } from 'vitest';
import { HandlerError, type InlineHandler } from '../../src/dispatch/handlers.ts';
import { createKnowledgeHandlers } from '../../src/knowledge/index.ts';
import { Pipeline, topics } from './pipeline.ts';

let pipeline: Pipeline;
afterEach(() => pipeline.plane.stop());

/** Every handler does its work, and the first time its result never arrives. */
const losingFirstResults = (): Record<string, InlineHandler> =>
  Object.fromEntries(
    [...createKnowledgeHandlers(() => pipeline.plane.services.db)].map(
      ([name, handler]): [string, InlineHandler] => [
        name,
        async (task, signal) => {
          const result = await handler(task, signal);
          if (task.number === 1)
            throw new HandlerError('LOST', 'The result is lost.', { retryAfterSeconds: 0 });
          return result;
        },
      ],
    ),
  );

test('a handler that runs twice leaves one row, one booking and one materialization', async () => {
  pipeline = await Pipeline.start({ handlers: losingFirstResults() });
  const usage = { prompt_tokens: 5, completion_tokens: 6 };
  await pipeline.publish(topics.chat, { pipeline_id: 'p', prompt: 'q', response: 'a', usage });
  await pipeline.publish(topics.compose, { pipeline_id: 'p', usage });
  expect(await pipeline.statuses()).toEqual({
    knowledge_chat_pair_materialize: 'COMPLETED',
    knowledge_chat_persist: 'COMPLETED',
    knowledge_compose: 'COMPLETED',
  });
  expect(await pipeline.count('attempts')).toBe(10);
  expect(await pipeline.count('knowledge_chat_audit')).toBe(1);
  expect(await pipeline.count('knowledge_chat_pairs')).toBe(1);
  expect(await pipeline.count('knowledge_events')).toBe(1);
  expect(await pipeline.count('materializations')).toBe(4);
  expect(
    await pipeline.plane.rows(
      'select t.step, u.input_tokens, u.output_tokens from runplane.usage u join runplane.tasks t on t.id = u.task_id',
    ),
  ).toEqual([
    { step: 'record', input_tokens: 5, output_tokens: 6 },
    { step: 'record', input_tokens: 5, output_tokens: 6 },
  ]);
  // The second time the row was there, and the task says so.
  expect(
    await pipeline.plane.rows(
      `select distinct output ->> 'stored' as stored from runplane.tasks where step <> 'record'`,
    ),
  ).toEqual([{ stored: 'false' }]);
});
