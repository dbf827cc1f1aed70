import { expect, test } from 'vitest';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { count } from '../support/tier.ts';

interface Ready {
  taskId: string;
  agent: string;
}

/** All that waits, best first. */
const readyTasks = (plane: ControlPlane): Promise<Ready[]> =>
  plane.rows<Ready>(`
    select r.task_id as "taskId", a.name as agent from runplane.ready_tasks r join runplane.agents a on a.id = r.agent_id
     order by r.priority_key, r.turn, r.rank`);

const random = (least: number, most: number): number =>
  least + Math.floor(Math.random() * (most - least + 1));

test('a claim brings the best tasks that limits leave room for, however they are spread over the agents of a queue', async () => {
  const plane = await ControlPlane.start();
  for (let story = 0; story < count({ test: 6, soak: 60 }); story++) {
    const agents = Array.from({ length: random(1, 20) }, (_, i) => `s${story}-a${i}`);
    // Room of each agent, and what the first of them share.
    const rooms = new Map<string, number>();
    const shared = {
      agents: agents.slice(0, random(2, 20)),
      room: story % 2 === 0 ? random(1, 20) : Number.MAX_SAFE_INTEGER,
    };
    if (story % 2 === 0)
      await plane.services.configuration.saveThrottle(
        { name: `s${story}`, maxConcurrentTasks: shared.room },
        actor,
      );
    for (const name of agents) {
      const room = random(0, 2) === 0 ? random(1, 30) : null;
      rooms.set(name, room ?? Number.MAX_SAFE_INTEGER);
      const throttles = story % 2 === 0 && shared.agents.includes(name) ? [`s${story}`] : [];
      await plane.agent(name, { maxConcurrentTasks: room, throttles });
      await plane.job(name, [name]);
    }
    const many = agents[random(0, agents.length - 1)];
    const runs = Array.from({ length: random(10, 400) }, () => ({
      job: random(0, 2) === 0 && many ? many : (agents[random(0, agents.length - 1)] ?? ''),
      priority: random(0, 3),
    }));
    const outcomes = await plane.services.intake.launchRuns(runs);
    expect(outcomes.every(({ kind }) => kind === 'LaunchRunSuccess')).toBe(true);

    for (let claims = 0; claims < 5; claims++) {
      const limit = random(1, 100);
      const best: string[] = [];
      for (const { taskId, agent } of await readyTasks(plane)) {
        const room = rooms.get(agent) ?? 0;
        const isShared = shared.agents.includes(agent);
        if (best.length === limit || room === 0 || (isShared && shared.room === 0)) continue;
        rooms.set(agent, room - 1);
        if (isShared) shared.room--;
        best.push(taskId);
      }
      expect((await plane.claim(agents, limit)).map(({ taskId }) => taskId)).toEqual(best);
    }
  }
  await plane.stop();
});
