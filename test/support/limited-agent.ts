import { beforeEach } from 'vitest';
import type { Assignment } from '../../src/dispatch/types.ts';
import type { SaveThrottleInput } from '../../src/operator/types.ts';
import type { ModelUsageInput } from '../../src/result/types.ts';
import { stopClock } from './clock.ts';
import { actor, ControlPlane } from './control-plane.ts';
import { waitingOf } from './waiting.ts';

/** For stories of the agent llm under the throttle api, on a clock that only they move. */
export function limitedAgent() {
  let plane: ControlPlane;
  let now: Date;
  beforeEach(async () => {
    plane = await ControlPlane.start();
    now = new Date();
    await advance(0);
    return () => plane.stop();
  });

  async function advance(seconds: number): Promise<void> {
    now = new Date(now.getTime() + seconds * 1000);
    await stopClock(plane.database.db, now);
  }

  /** An agent under a throttle, and a job for it, all of one name. */
  async function limited(limits: Omit<SaveThrottleInput, 'name'>, agents = ['llm']): Promise<void> {
    await limit(limits);
    for (const agent of agents) {
      await plane.agent(agent, { throttles: ['api'] });
      await plane.job(agent, [agent]);
    }
  }
  const limit = (limits: Omit<SaveThrottleInput, 'name'>) =>
    plane.services.configuration.saveThrottle({ name: 'api', ...limits }, actor);

  const ask = (estimatedTokens?: number, input: object = {}): Promise<string> =>
    plane.launch('llm', { estimatedTokens, ...input });

  async function claimOne(): Promise<Assignment> {
    const [assignment] = await plane.claim(['llm'], 1);
    if (!assignment) throw new Error('nothing was claimed');
    return assignment;
  }
  const done = (assignment: Assignment, usage: ModelUsageInput[] = []) =>
    plane.report(assignment, { status: 'COMPLETED', output: {}, usage });
  const used = (outputTokens: number, more: ModelUsageInput = {}): ModelUsageInput[] => [
    { outputTokens, ...more },
  ];
  const window = async () => {
    const [use] = await plane.rows<{ tokens: number; requests: number }>(
      `select s.tokens::int, s.requests::int from runplane.throttles t
        cross join lateral runplane.throttle_state(array[t.id], runplane.clock()) s where t.name = 'api'`,
    );
    return use;
  };
  /** Why the task of a run waits, and for how many seconds. */
  const waits = async (runId: string) => {
    const [task] = await plane.rows<{ id: string }>('select id from runplane.tasks where run_id = $1', [
      runId,
    ]);
    const waiting = await waitingOf(plane.database.db, task?.id ?? '');
    const seconds = waiting?.until && (waiting.until.getTime() - now.getTime()) / 1000;
    return waiting && { reason: waiting.reason, seconds };
  };
  /** How many of the waiting tasks may run now. */
  const claimable = async (most = 50): Promise<number> => (await plane.claim(['llm'], most)).length;

  return {
    /** Of the story that runs. */
    get plane() {
      return plane;
    },
    get now() {
      return now;
    },
    advance,
    limited,
    limit,
    ask,
    claimOne,
    done,
    used,
    window,
    waits,
    claimable,
  };
}
