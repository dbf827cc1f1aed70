import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { bearer, type GuardedServer, startGuardedServer } from '../support/guarded-server.ts';

let server: GuardedServer;
beforeAll(async () => {
  server = await startGuardedServer();
  await server.plane.agent('a');
  await server.plane.job('one', ['a']);
});
afterAll(() => server.stop());
afterEach(() => vi.useRealTimers());

const claim = `mutation { claimTasks(input: { workerId: "w", agents: ["a"], limit: 1, waitSeconds: 25 }) {
  ... on ClaimTasksSuccess { assignments { taskId } } } }`;

test.each([
  ['claims', 'WORK', claim],
  [
    'reads the change log',
    'READ',
    '{ runStatusChanges(after: "$after", waitSeconds: 25) { changes { id } } }',
  ],
] as const)('who %s and waits gets nothing once the token is revoked', async (_, scope, operation) => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const { id, secret } = await server.token({ scopes: [scope] });
  const after = await server.plane.services.changeLog.currentCursor();
  const waiting = server.send(operation.replace('$after', after), bearer(secret));
  await expect.poll(() => vi.getTimerCount()).toBeGreaterThan(0);
  await server.revoke(id);
  await vi.advanceTimersByTimeAsync(4_000);
  const { body } = await waiting;
  expect(body.errors?.[0]?.extensions).toMatchObject({ code: 'UNAUTHENTICATED' });
  // What comes afterwards is for others.
  await server.plane.launch('one');
  const [assignment] = await server.plane.claim(['a'], 1);
  expect(assignment).toBeDefined();
});
