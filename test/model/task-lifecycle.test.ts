import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ControlPlane } from '../support/control-plane.ts';
import { expectInvariants } from '../support/invariants.ts';
import { count } from '../support/tier.ts';
import { carryOut } from './carry-out.ts';
import { type Command, crowdedStory, type Meant, meant, type Step, type Story, story } from './commands.ts';
import { explain } from './explain.ts';
import { LifecycleModel } from './lifecycle-model.ts';
import { forgetWork, launch, modelState, setClock, startPlanes, storedState } from './lifecycle-plane.ts';
import { attemptTable, taskTable } from './lifecycle-table.ts';
import { storiesOfEachCell } from './stories.ts';

let planes: [ControlPlane, ControlPlane];
beforeAll(async () => {
  planes = await startPlanes();
});
afterAll(async () => {
  await planes[1].services.stop();
  await planes[0].stop();
});

/** Plays a story; after each of its steps the database holds what the model holds. */
async function play({ launches, steps }: Story): Promise<void> {
  const [plane] = planes;
  await forgetWork(plane);
  let model = new LifecycleModel();
  for (const name of launches) await launch(plane, model, name);
  for (const step of steps) {
    if (step.do === 'pass') {
      model.now += step.seconds;
      await setClock(plane, model.now);
    } else if (step.do === 'wear') {
      for (const worn of wear(step)) model = await one(worn, model);
    } else if (step.do === 'together') model = await together(step.commands, model);
    else model = await one(step, model);
  }
  await expectInvariants(plane.database.db);
}

function* wear({ by }: Extract<Step, { do: 'wear' }>): Generator<Step> {
  for (let i = 0; i < (by === 'LOST' ? 5 : 21); i++) {
    yield { do: 'claim', limit: 1 };
    if (by === 'RELEASED') yield { do: 'report', attempt: 0, form: 'handedBack' };
    else {
      yield { do: 'pass', seconds: 31 };
      yield { do: 'sweep', attempt: 0 };
    }
  }
}

async function one(step: Step, model: LifecycleModel): Promise<LifecycleModel> {
  const [plane] = planes;
  if (step.do === 'pass') {
    model.now += step.seconds;
    await setClock(plane, model.now);
    return model;
  }
  const command = meant(step as Command, model);
  if (!command) return model;
  const answer = await carryOut(command, plane);
  const [after] = explain(command, answer, model, true);
  if (!after)
    throw new Error(
      `${JSON.stringify(command)} was answered ${JSON.stringify(answer)}: ${JSON.stringify(modelState(model))}`,
    );
  expect(await storedState(plane)).toEqual(modelState(after));
  return after;
}

/** Commands that are under way together have an outcome that they could have had one after the other. */
async function together(commands: readonly Command[], model: LifecycleModel): Promise<LifecycleModel> {
  const all = commands.map((command) => meant(command, model)).filter((command) => command !== null);
  const answers = await Promise.all(
    all.map((command, i) => carryOut(command, planes[i % 2] as ControlPlane)),
  );
  const stored = await storedState(planes[0]);
  const explanation = orders(all.map((_, i) => i))
    .flatMap((order) =>
      order.reduce(
        (models, i) => models.flatMap((m) => explain(all[i] as Meant, answers[i] as never, m, false)),
        [model],
      ),
    )
    .find((after) => isDeepStrictEqual(modelState(after), stored));
  if (!explanation) {
    throw new Error(
      `No order of ${JSON.stringify(all)} explains ${JSON.stringify(answers)} and ${JSON.stringify(stored)} after ${JSON.stringify(modelState(model))}`,
    );
  }
  return explanation;
}

const orders = (items: readonly number[]): number[][] =>
  items.length === 0
    ? [[]]
    : items.flatMap((item) => orders(items.filter((other) => other !== item)).map((rest) => [item, ...rest]));

const hour = 3_600_000;
test(
  'each cell of the tables comes true',
  async () => {
    for (const story of storiesOfEachCell) await play(story);
    expect([...taskTable.unseen(), ...attemptTable.unseen()]).toEqual([]);
  },
  hour,
);

test(
  'whatever happens in whatever order, the database holds what docs/task-lifecycle.md says',
  async () => {
    await fc.assert(fc.asyncProperty(story, play), { numRuns: count({ test: 100, soak: 10_000 }) });
  },
  hour,
);

test(
  'what happens at the same moment has an outcome as if it happened one after the other',
  async () => {
    await fc.assert(fc.asyncProperty(crowdedStory, play), { numRuns: count({ test: 50, soak: 5000 }) });
  },
  hour,
);
