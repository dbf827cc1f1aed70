import { expect, test } from 'vitest';
import type { Assignment } from '../../src/dispatch/types.ts';
import { stopClock } from '../support/clock.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { count } from '../support/tier.ts';

const tokensPerMinute = 1_000_000;
const stepMs = 250;

/** The same numbers each time (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
const random = randomNumbers(7);
const normal = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

/** What a provider counts: the tokens of the calls of the last minute. A call that would exceed its limit is refused. */
class Meter {
  readonly #calls: { at: number; tokens: number }[] = [];
  #sum = 0;
  refused = 0;

  used(at: number): number {
    for (let first = this.#calls[0]; first && first.at <= at - 60_000; first = this.#calls[0]) {
      this.#sum -= first.tokens;
      this.#calls.shift();
    }
    return this.#sum;
  }

  /** Answers in how many seconds to call again; 0: the call was made. */
  call(at: number, tokens: number): number {
    if (this.used(at) + tokens > tokensPerMinute) {
      this.refused++;
      let missing = this.#sum + tokens - tokensPerMinute;
      const opens = this.#calls.find((call) => (missing -= call.tokens) <= 0);
      return opens ? (opens.at + 60_001 - at) / 1000 : 60;
    }
    this.#sum += tokens;
    this.#calls.push({ at, tokens });
    return 0;
  }
}

test('a budget of tokens is used up and not exceeded, though estimates are wrong by a factor of 3', async () => {
  const n = count({ test: 1000, soak: 20_000 });
  const big = { index: n / 2, tokens: 100_000 };
  const plane = await ControlPlane.start();
  await plane.services.configuration.saveThrottle(
    { name: 'api', maxTokensPerMinute: tokensPerMinute },
    actor,
  );
  await plane.agent('llm', { throttles: ['api'] });
  await plane.job('llm', ['llm']);
  const start = Date.UTC(2030, 0, 1);
  let now = start;
  await stopClock(plane.database.db, new Date(now));

  // Log-normal sizes, median 1,500; the one in the middle is expected to take a third of the budget.
  const tasks = Array.from({ length: n }, (_, index) => {
    if (index === big.index) return { index, tokens: big.tokens, estimatedTokens: big.tokens * 3 };
    const tokens = Math.min(200_000, Math.ceil(1500 * Math.exp(normal())));
    return { index, tokens, estimatedTokens: Math.ceil(tokens * 3 ** (2 * random() - 1)) };
  });
  for (let at = 0; at < n; at += 500) {
    await plane.services.intake.launchRuns(
      tasks
        .slice(at, at + 500)
        .map(({ estimatedTokens, ...config }) => ({ job: 'llm', config, estimatedTokens })),
    );
  }

  // Calls are short: while one runs, what it reserves is not used yet, and that is no fault of the window.
  const meter = new Meter();
  let running: { assignment: Assignment; ends: number }[] = [];
  let left = n;
  let claims = 0;
  const before = new Set(Array.from({ length: big.index }, (_, index) => index));
  let bigWaitsSince = 0;
  let bigBegan = 0;
  /** How full the provider's minute was, from the first minute on and as long as tasks waited. */
  let used = { sum: 0, looks: 0 };
  let moved = start;
  while (left > 0) {
    const due = running.filter(({ ends }) => ends <= now);
    running = running.filter(({ ends }) => ends > now);
    const reports = due.map(({ assignment }) => {
      const { tokens } = assignment.input as { tokens: number };
      const retryAfterSeconds = meter.call(now, tokens);
      const accepted = retryAfterSeconds === 0;
      if (accepted) left--;
      return {
        ...plane.credentials(assignment),
        ...(accepted
          ? { status: 'COMPLETED' as const, output: {}, usage: [{ outputTokens: tokens }] }
          : {
              status: 'FAILED' as const,
              error: {
                code: '429',
                message: 'too fast',
                kind: 'RATE_LIMITED' as const,
                retryAfterSeconds: 1,
              },
            }),
      };
    });
    if (reports.length > 0) await plane.services.results.reportResults(reports);
    await plane.rows('select runplane.move_due_tasks(500)');
    if ((now - start) % 5000 === 0) await plane.rows('select runplane.learn_estimates()');
    const claimed = await plane.claim(['llm'], 100);
    for (const assignment of claimed) {
      running.push({ assignment, ends: now + 100 + random() * 800 });
      const { index } = assignment.input as { index: number };
      claims++;
      if (index === big.index) bigBegan = now;
      before.delete(index);
      if (before.size === 0 && bigWaitsSince === 0) bigWaitsSince = now;
    }
    if (now - start >= 60_000 && claims < n)
      used = { sum: used.sum + meter.used(now), looks: used.looks + 1 };
    now += stepMs;
    await stopClock(plane.database.db, new Date(now));
    if (running.length > 0) moved = now;
    if (now - moved > 180_000) throw new Error(`${left} tasks do not move`);
  }
  const waited = Math.max(0, bigBegan - bigWaitsSince) / 1000;
  const share = used.sum / used.looks / tokensPerMinute;
  console.log(
    `${n} tasks in ${Math.round((now - start) / 1000)} s of its clock: ${meter.refused} calls refused, ${(100 * share).toFixed(1)} % of the budget used, the biggest waited ${waited} s`,
  );
  // In the first minute nothing is learned yet of by how much estimates fall short.
  expect(meter.refused).toBeLessThanOrEqual(count({ test: 20, soak: n / 1000 }));
  // The large task is a good part of a short run: its turn costs what the others may not use meanwhile.
  expect(share).toBeGreaterThan(count({ test: 0.5, soak: 0.95 }));
  expect(waited).toBeLessThanOrEqual(120);
  await plane.stop();
}, 1_200_000);
