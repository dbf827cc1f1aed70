import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { toPublicId } from '../../src/domain/ids.ts';
import type { JobStepInput } from '../../src/operator/types.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { Client } from './client.ts';

let plane: ControlPlane;
let client: Client;
beforeEach(async () => {
  plane = await ControlPlane.start();
  client = new Client(plane);
  for (const name of ['a', 'b', 'c']) await plane.agent(name);
});
afterEach(() => plane.stop());

const step = (name: string, dependsOn: string[], more: Partial<JobStepInput> = {}): JobStepInput => ({
  name,
  agent: name,
  dependsOn,
  ...more,
});
const failure = { status: 'FAILED', error: { code: 'NO', kind: 'PERMANENT' } } as const;
const claimOne = async (agent: string) => {
  const [task] = await plane.claim([agent], 1);
  if (!task) throw new Error(`nothing of ${agent}`);
  return task;
};

interface Listed {
  id: string;
  step: string;
  status: string;
  allowedActions: string[];
}
/** Its tasks as a list shows them, by step. */
async function tasksOf(runId: string): Promise<Record<string, Listed>> {
  const { run } = await client.query(
    'query($id: ID!) { run(id: $id) { tasks { nodes { id step status allowedActions } } } }',
    { id: toPublicId('run', runId) },
  );
  return Object.fromEntries((run.tasks.nodes as Listed[]).map((task) => [task.step, task]));
}

const mayRetry = (tasks: Record<string, Listed>): Record<string, boolean> =>
  Object.fromEntries(
    Object.entries(tasks).map(([name, { allowedActions }]) => [name, allowedActions.includes('RETRY')]),
  );

/** Asks for the retry: it must be answered as the offer says. */
async function retryIsAsOffered(task: Listed | undefined): Promise<string> {
  const { retryTask } = await client.query(
    'mutation($id: ID!) { retryTask(taskId: $id) { __typename ... on Problem { message } } }',
    { id: task?.id },
  );
  expect(retryTask).toMatchObject({
    __typename: task?.allowedActions.includes('RETRY') ? 'TaskActionSuccess' : 'IllegalState',
  });
  return retryTask.message;
}

describe('a retry is offered only where it is not refused', () => {
  test('not while the run is being cancelled, and when that is over', async () => {
    await plane.job('two', [step('a', []), step('b', [])]);
    const run = await plane.launch('two');
    const executed = await claimOne('b');
    await plane.services.actions.cancelRun({ runId: run }, actor);
    const cancelling = await tasksOf(run);
    expect(cancelling).toMatchObject({ a: { status: 'CANCELLED', allowedActions: ['DELETE'] } });
    expect(await retryIsAsOffered(cancelling.a)).toContain('being cancelled');
    await plane.report(executed, { status: 'CANCELLED' });
    const over = await tasksOf(run);
    expect(mayRetry(over)).toEqual({ a: true, b: true });
    await retryIsAsOffered(over.a);
  });

  test('not of a step whose dependency did not complete, and of one that waits for it again', async () => {
    await plane.job('chain', [
      step('a', []),
      step('b', ['a']),
      step('c', ['a'], { when: 'DEPENDENCIES_FINISHED' }),
    ]);
    const run = await plane.launch('chain');
    const tasks = await tasksOf(run);
    await client.query('mutation($id: ID!) { cancelTask(taskId: $id) { __typename } }', { id: tasks.b?.id });
    await plane.report(await claimOne('a'), failure);
    await plane.report(await claimOne('c'), failure);
    const failed = await tasksOf(run);
    expect(mayRetry(failed)).toEqual({ a: true, b: false, c: true });
    expect(await retryIsAsOffered(failed.b)).toContain('step a');
    await retryIsAsOffered(failed.a);
    const waiting = await tasksOf(run);
    expect(mayRetry(waiting)).toEqual({ a: false, b: true, c: true });
    await retryIsAsOffered(waiting.b);
    expect(await tasksOf(run)).toMatchObject({ b: { status: 'BLOCKED' } });
  });

  test('of a step whose dependency failed and is optional', async () => {
    await plane.job('lenient', [step('a', [], { optional: true }), step('b', ['a'])]);
    const run = await plane.launch('lenient');
    await plane.report(await claimOne('a'), failure);
    await plane.report(await claimOne('b'), failure);
    const tasks = await tasksOf(run);
    expect(mayRetry(tasks)).toEqual({ a: true, b: true });
    await retryIsAsOffered(tasks.b);
  });

  test('not of one whose input cannot be rendered, nor by its dead letter', async () => {
    await plane.job('late', [
      step('a', []),
      step('b', ['a'], { input: { $eval: 'steps.a.output.missing.deep' } }),
    ]);
    const run = await plane.launch('late');
    await plane.report(await claimOne('a'), { status: 'COMPLETED' });
    const tasks = await tasksOf(run);
    expect(tasks).toMatchObject({ b: { status: 'FAILED', allowedActions: ['DELETE'] } });
    expect(await retryIsAsOffered(tasks.b)).toContain('cannot be rendered');
    const { deadLetters } = await client.query('{ deadLetters { nodes { id } } }');
    const { replayDeadLetter } = await client.query(
      'mutation($id: ID!) { replayDeadLetter(id: $id) { __typename ... on Problem { message } } }',
      { id: deadLetters.nodes[0].id },
    );
    expect(replayDeadLetter).toMatchObject({
      __typename: 'IllegalState',
      message: expect.stringContaining('launch the job anew'),
    });
  });

  test('of a tree by what was spawned in the step that it waits for', async () => {
    await plane.job('tree', [step('a', []), step('b', ['a'])]);
    const run = await plane.launch('tree');
    await plane.report(await claimOne('a'), { status: 'COMPLETED', spawn: [{ step: 'part', agent: 'c' }] });
    await plane.report(await claimOne('c'), failure);
    const failed = await tasksOf(run);
    expect(mayRetry(failed)).toEqual({ a: false, b: false, part: true });
    expect(await retryIsAsOffered(failed.b)).toContain('step a');
    await retryIsAsOffered(failed.part);
    expect(await tasksOf(run)).toMatchObject({ b: { status: 'BLOCKED' }, part: { status: 'ENQUEUED' } });
  });
});
