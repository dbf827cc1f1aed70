import { GraphQLError } from 'graphql';
import { expect, test } from 'vitest';
import { CursorError } from '../../src/changelog/cursor.ts';
import { SlowConsumerError } from '../../src/changelog/slow-consumer.ts';
import { maskError } from '../../src/graphql/errors.ts';
import { ReadError } from '../../src/read/errors.ts';

const located = (cause: Error): GraphQLError =>
  new GraphQLError(cause.message, { originalError: cause, path: ['tasks'] });

function mask(error: unknown): { shown: GraphQLError; logged: object[] } {
  const logged: object[] = [];
  return { shown: maskError(error, 'request-1', { error: (fields) => logged.push(fields) }), logged };
}

test('an unexpected error shows a number and nothing of its cause, which the log has', () => {
  const { shown, logged } = mask(located(new Error('syntax error at or near "selct"')));
  expect(JSON.stringify(shown)).not.toContain('selct');
  expect(shown.path).toEqual(['tasks']);
  expect(shown.extensions).toEqual({ code: 'INTERNAL_SERVER_ERROR', requestId: expect.any(String) });
  expect(logged).toEqual([
    {
      requestId: shown.extensions.requestId,
      code: 'INTERNAL_SERVER_ERROR',
      error: expect.stringContaining('selct'),
    },
  ]);
});

test('an answer that cannot be written as its type is a failure of the server', () => {
  const { shown, logged } = mask(
    located(new GraphQLError('Int cannot represent non-integer value: "secret"')),
  );
  expect(shown.extensions.code).toBe('INTERNAL_SERVER_ERROR');
  expect(shown.message).not.toContain('secret');
  expect(logged).toHaveLength(1);
});

test.each(['ECONNREFUSED', '57P01', '53300', '57014'])(
  'the code %s means that the database is not there now',
  (code) => {
    const { shown } = mask(located(Object.assign(new Error('secret host'), { code })));
    expect(shown.extensions.code).toBe('UNAVAILABLE');
    expect(shown.message).not.toContain('secret');
  },
);

test.each([
  [new CursorError('CURSOR_EXPIRED', 'old', 'abc'), { code: 'CURSOR_EXPIRED', cursor: 'abc' }],
  [new SlowConsumerError(), { code: 'SLOW_CONSUMER', limit: 60 }],
  [
    located(new ReadError('INVALID_CURSOR', 'other list', 'after')),
    { code: 'INVALID_CURSOR', field: 'after' },
  ],
  [new GraphQLError('no', { extensions: { code: 'BAD_USER_INPUT' } }), { code: 'BAD_USER_INPUT' }],
])('%s is shown as it is', (error, extensions) => {
  const { shown, logged } = mask(error);
  expect(shown.message).toBe(error.message);
  expect(shown.extensions).toEqual(extensions);
  expect(logged).toEqual([]);
});
