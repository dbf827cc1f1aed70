import { defaultFieldResolver, GraphQLObjectType } from 'graphql';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { unrestricted, type Viewer } from '../../src/domain/credential.ts';
import { buildSchema } from '../../src/graphql/schema.ts';
import { operationKey } from '../../src/http/shared-results.ts';
import { openEventStream } from '../support/event-stream.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

/** How often a change was executed, by its status. */
let executed: string[] = [];
let server: TestServer;
beforeEach(async () => {
  executed = [];
  const schema = buildSchema();
  const change = schema.getType('TaskStatusChange');
  if (!(change instanceof GraphQLObjectType)) throw new Error('there is no TaskStatusChange');
  const field = change.getFields().toStatus;
  if (!field) throw new Error('there is no toStatus');
  const { resolve = defaultFieldResolver } = field;
  field.resolve = (source: { toStatus: string }, ...rest) => {
    executed.push(source.toStatus);
    return resolve(source, ...rest);
  };
  server = await startTestServer({ schema });
  await server.plane.agent('a');
  await server.plane.job('one', ['a']);
});
afterEach(() => server.stop());

const watch = (fields: string): string =>
  `subscription { taskStatusChanged { cursor changes { id toStatus ${fields} } } }`;

test('an event is executed and written down once for all who watch it by the same operation', async () => {
  const operations = [watch('task { id }'), watch('runId')];
  const streams = await Promise.all(
    operations.flatMap((operation) =>
      Array.from({ length: 10 }, () => openEventStream(server.url, operation)),
    ),
  );
  // Everybody is greeted, and so watches.
  await Promise.all(streams.map((stream) => stream.next()));
  await server.plane.launch('one');
  const told = await Promise.all(streams.map((stream) => stream.next()));
  expect(new Set(told.map((event) => event?.data)).size).toBe(2);
  expect(executed).toEqual(['ENQUEUED', 'ENQUEUED']);

  for (const stream of streams.slice(1)) stream.leave();
  await server.plane.claim(['a']);
  expect((await streams[0]?.next())?.data).toContain('PROCESSING');
  streams[0]?.leave();
  expect(executed.filter((status) => status === 'PROCESSING')).toHaveLength(1);
});

test('who may see less, or asks with other variables, shares nothing', () => {
  const request = { query: 'q', operationName: null, variables: { a: 1 } };
  const viewer: Viewer = {
    name: 'one',
    scopes: ['READ'],
    signedIn: true,
    tokenId: null,
    restrictions: unrestricted,
  };
  const key = operationKey(request, viewer);
  expect(operationKey({ ...request, variables: { a: 1 } }, { ...viewer, name: 'other' })).toBe(key);
  for (const [other, who] of [
    [{ ...request, variables: { a: 2 } }, viewer],
    [{ ...request, query: 'r' }, viewer],
    [{ ...request, operationName: 'n' }, viewer],
    [request, { ...viewer, scopes: ['READ', 'PAYLOAD_READ'] as const }],
    [request, { ...viewer, restrictions: { ...unrestricted, agents: ['a'] } }],
  ] as const)
    expect(operationKey(other, who)).not.toBe(key);
});
