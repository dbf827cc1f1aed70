import { afterEach, expect, test, vi } from 'vitest';
import { WorkStream } from '../../src/dispatch/work-stream.ts';

const agents = ['a', 'b'].map((name) => ({ id: name, name, dispatch: 'PULL', served: true }));

/** Settles when the test says so. */
function answerLater<Answer>() {
  let give: (answer: Answer) => void = () => {};
  const answer = new Promise<Answer>((resolve) => {
    give = resolve;
  });
  return { answer, give };
}

afterEach(() => vi.useRealTimers());

test('what has work while the first look is under way is told next, and what that look found only once', async () => {
  const looked = answerLater<readonly string[]>();
  const stream = new WorkStream(agents, {
    findAgents: () => Promise.resolve(agents),
    findClaimable: () => looked.answer,
    onEnd: () => {},
  });
  const first = stream.next();
  stream.offer(['a', 'b']);
  looked.give(['a']);
  expect(await first).toMatchObject({ value: { agents: ['a'] } });
  expect(await stream.next()).toMatchObject({ value: { agents: ['b'] } });
  await stream.return();
});

test('what has work while a silent stream asks for its agents is told next', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const asked = answerLater<typeof agents>();
  const stream = new WorkStream(agents, {
    findAgents: () => {
      stream.offer(['a']);
      return asked.answer;
    },
    findClaimable: () => Promise.resolve([]),
    onEnd: () => {},
  });
  await stream.next();
  const silent = stream.next();
  await vi.advanceTimersByTimeAsync(15_000);
  asked.give(agents);
  expect(await silent).toMatchObject({ value: { agents: [] } });
  const hint = stream.next();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await Promise.race([hint, Promise.resolve('silence')])).toMatchObject({ value: { agents: ['a'] } });
  await stream.return();
});
