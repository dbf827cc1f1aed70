import fc from 'fast-check';
import { type FormName, forms, type JobName, jobs } from './kinds.ts';
import type { LifecycleModel } from './lifecycle-model.ts';
import type { ModelTask } from './lifecycle-rules.ts';

/** What is done next. Tasks and attempts are meant by number: the n-th task, the n-th attempt from the newest. */
export type Command =
  | { do: 'claim'; limit: number }
  | { do: 'report'; attempt: number; form: FormName }
  | { do: 'heartbeat' | 'sweep'; attempt: number }
  | { do: 'move' }
  | { do: 'cancelTask' | 'cancelRun' | 'retry' | 'replay' | 'runNow' | 'delete'; task: number }
  | { do: 'setPriority'; task: number; priority: number };
export type Step =
  | Command
  | { do: 'pass'; seconds: number }
  /** The same end again and again: of the newest attempt of whatever is claimed next. */
  | { do: 'wear'; by: 'LOST' | 'RELEASED' }
  | { do: 'together'; commands: Command[] };
export interface Story {
  launches: JobName[];
  steps: Step[];
}

const index = fc.nat(7);
const attempt = fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 2, arbitrary: fc.nat(6) });
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('claim' as const), limit: fc.integer({ min: 1, max: 4 }) }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('report' as const),
      attempt,
      form: fc.constantFrom(...(Object.keys(forms) as FormName[])),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('heartbeat' as const), attempt }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('sweep' as const), attempt }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('move' as const) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'cancelTask',
        'cancelTask',
        'cancelRun',
        'retry',
        'retry',
        'replay',
        'runNow',
        'delete',
      ),
      task: index,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('setPriority' as const),
      task: index,
      priority: fc.constantFrom(-3, 0, 50),
    }),
  },
);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 40, arbitrary: command },
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant('pass' as const), seconds: fc.constantFrom(1, 11, 31, 101) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('wear' as const), by: fc.constantFrom('LOST', 'RELEASED') }),
  },
);
const launches = fc.array(fc.constantFrom(...(Object.keys(jobs) as JobName[])), {
  minLength: 1,
  maxLength: 4,
});

export const story: fc.Arbitrary<Story> = fc.record({
  launches,
  steps: fc.array(step, { minLength: 5, maxLength: 30 }),
});
/** Stories in which every now and then commands arrive together. */
export const crowdedStory: fc.Arbitrary<Story> = fc.record({
  launches,
  steps: fc.array(
    fc.oneof(
      { weight: 2, arbitrary: step },
      {
        weight: 1,
        arbitrary: fc.record({
          do: fc.constant('together' as const),
          commands: fc.array(command, { minLength: 2, maxLength: 4 }),
        }),
      },
    ),
    { minLength: 5, maxLength: 20 },
  ),
});

/** A command with what it means in the model as it is, so that its meaning does not change when others come before it. */
export type Meant =
  | (Exclude<Command, { do: 'claim' | 'move' }> & { id: string })
  | Extract<Command, { do: 'claim' | 'move' }>;

export function meant(command: Command, model: LifecycleModel): Meant | null {
  if (command.do === 'claim' || command.do === 'move') return command;
  if ('attempt' in command) {
    const { attempts } = model;
    const chosen = attempts[attempts.length - 1 - (command.attempt % attempts.length)];
    return chosen ? { ...command, id: chosen.attempt.id } : null;
  }
  const task = model.tasks[command.task % model.tasks.length] as ModelTask;
  return { ...command, id: task.id };
}
