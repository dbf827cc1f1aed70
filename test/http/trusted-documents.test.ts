import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { documentHash, readTrustedDocuments } from '../../src/http/trusted-documents.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

const directory = mkdtempSync(join(tmpdir(), 'runplane-documents-'));
const manifest = (content: unknown): string => {
  const path = join(directory, 'documents.json');
  writeFileSync(path, JSON.stringify(content));
  return path;
};

const who = 'query Who { viewer { name } }';
const cancel = 'mutation Cancel($id: ID!) { cancelRun(runId: $id) { __typename } }';
const watch = 'subscription Watch { taskStatusChanged { caughtUp } }';

let server: TestServer;
beforeAll(async () => {
  const path = manifest({
    [documentHash(who)]: who,
    [`sha256:${documentHash(cancel)}`]: cancel,
    [documentHash(watch)]: watch,
  });
  server = await startTestServer({ access: { trustedDocuments: readTrustedDocuments(path) } });
});
afterAll(async () => {
  await server.stop();
  rmSync(directory, { recursive: true });
});

const send = (body: object, accept = 'application/json') =>
  fetch(server.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept },
    body: JSON.stringify(body),
  });
const answer = { data: { viewer: { name: 'local' } } };

describe('a document of the list', () => {
  test.each([
    ['by its hash', { documentId: documentHash(who) }],
    ['by its hash with the algorithm', { documentId: `sha256:${documentHash(who)}` }],
    [
      'as clients of persisted queries ask for it',
      { extensions: { persistedQuery: { version: 1, sha256Hash: documentHash(who) } } },
    ],
    ['by its text', { query: who }],
  ])('is executed %s', async (_, body) => {
    expect(await (await send(body)).json()).toEqual(answer);
  });

  test('is executed by GET and as a stream', async () => {
    expect(await (await fetch(`${server.url}?documentId=${documentHash(who)}`)).json()).toEqual(answer);
    const stream = await send({ documentId: documentHash(watch) }, 'text/event-stream');
    expect(stream.status).toBe(200);
    expect(stream.headers.get('content-type')).toContain('text/event-stream');
    await stream.body?.cancel();
  });

  test('takes variables', async () => {
    const response = await send({
      documentId: documentHash(cancel),
      variables: { id: 'run_01jzzzzzzzfzzvzzzzzzzzzzzz' },
    });
    expect(await response.json()).toEqual({ data: { cancelRun: { __typename: 'NotFound' } } });
  });

  test('cannot be a mutation by GET', async () => {
    expect((await fetch(`${server.url}?documentId=${documentHash(cancel)}`)).status).toBe(405);
  });
});

describe.each(['application/json', 'text/event-stream'])('any other, with Accept: %s,', (accept) => {
  test.each([
    ['by its text', { query: '{ viewer { name } }' }],
    ['by a hash that is not there', { documentId: documentHash('{ viewer { name } }') }],
    ['by the hash of another', { query: '{ viewer { scopes } }', documentId: documentHash(who) }],
    ['of introspection', { query: '{ __schema { queryType { name } } }' }],
    ['without text or hash', {}],
  ])('%s is refused', async (_, body) => {
    const response = await send(body, accept);
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({
      errors: [{ extensions: { code: 'DOCUMENT_NOT_TRUSTED' } }],
    });
  });
});

test('by GET any other is refused too', async () => {
  expect((await fetch(`${server.url}?query={viewer{name}}`)).status).toBe(403);
});

test('a list in which a hash is not that of its document is not used', () => {
  expect(() => readTrustedDocuments(manifest({ [documentHash(who)]: watch }))).toThrow('is not the SHA-256');
  expect(() => readTrustedDocuments(manifest([who]))).toThrow('one JSON object');
  expect(() => readTrustedDocuments(join(directory, 'missing.json'))).toThrow('ENOENT');
});
