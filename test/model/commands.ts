import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { actor, type ControlPlane } from '../support/control-plane.ts';
import { agents, type FormName, forms, type JobName, jobs } from './kinds.ts';
import type { LifecycleModel } from './lifecycle-model.ts';
import { type ModelAttempt, type ModelTask, publicStatus } from './lifecycle-rules.ts';

/** What is done next. Tasks and attempts are meant by number: the n-th task, the n-th attempt from the newest. */
export type Command =
  | { do: 'claim'; limit: number }
  | { do: 'report'; attempt: number; form: FormName }
  | { do: 'heartbeat' | 'sweep'; attempt: number }
  | { do: 'move' }
  | { do: 'cancelTask' | 'cancelRun' | 'retry' | 'replay'; task: number };
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
      do: fc.constantFrom('cancelTask', 'cancelTask', 'cancelRun', 'retry', 'retry', 'replay'),
      task: index,
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

/** What the product answered. */
export type Answer =
  | { claimed: { taskId: string; attemptId: string; number: number }[] }
  | { moved: number }
  | { answer: string | null; status?: string };

export async function carryOut(command: Meant, plane: ControlPlane): Promise<Answer> {
  const { actions, dispatch } = plane.services;
  switch (command.do) {
    case 'claim': {
      const claimed = await plane.claim(Object.keys(agents), command.limit);
      return { claimed: claimed.map(({ taskId, attemptId, number }) => ({ taskId, attemptId, number })) };
    }
    case 'move': {
      const [row] = await plane.rows<{ moved: number }>('select runplane.move_due_tasks(100) as moved');
      return { moved: row?.moved ?? 0 };
    }
    case 'heartbeat': {
      const [status] = await dispatch.extendLeases([plane.credentials({ attemptId: command.id })]);
      return { answer: status?.state ?? null };
    }
    case 'sweep':
      return { answer: (await plane.sweep({ attemptId: command.id })).answer };
    case 'report': {
      const outcome = await plane.report({ attemptId: command.id }, forms[command.form]);
      return outcome.kind === 'ReportResultSuccess'
        ? { answer: outcome.outcome, status: outcome.taskStatus }
        : { answer: outcome.kind };
    }
    case 'cancelRun': {
      const [row] = await plane.rows<{ runId: string }>(
        'select run_id as "runId" from runplane.tasks where id = $1',
        [command.id],
      );
      const outcome = await actions.cancelRun({ runId: row?.runId ?? '' }, actor);
      return outcome.kind === 'RunActionSuccess'
        ? { answer: 'Success', status: outcome.runStatus }
        : { answer: outcome.kind };
    }
    case 'cancelTask':
      return taskAnswer(await actions.cancelTask({ taskId: command.id }, actor));
    case 'retry':
      return taskAnswer(await actions.retryTask({ taskId: command.id }, actor));
    case 'replay': {
      const [letter] = await plane.rows<{ id: string }>(
        'select id from runplane.dead_letters where task_id = $1',
        [command.id],
      );
      return taskAnswer(await actions.replayDeadLetter({ id: letter?.id ?? command.id }, actor));
    }
  }
}

const taskAnswer = (outcome: { kind: string; taskStatus?: string }): Answer =>
  outcome.kind === 'TaskActionSuccess'
    ? { answer: 'Success', status: outcome.taskStatus ?? '' }
    : { answer: outcome.kind };

/**
 * The models that explain the answer, when the command met this model: none if it cannot be. Alone, a claim takes all
 * that it may; among others it may leave what they hold.
 */
export function explain(
  command: Meant,
  answer: Answer,
  before: LifecycleModel,
  alone: boolean,
): LifecycleModel[] {
  if (command.do === 'move') return explainMove((answer as { moved: number }).moved, before, alone);
  const model = before.clone();
  if (command.do === 'claim') {
    const { claimed } = answer as Extract<Answer, { claimed: unknown }>;
    const tasks = claimed.map(({ taskId }) => model.tasks.find(({ id }) => id === taskId) as ModelTask);
    const ready = model.tasks.filter(({ state }) => state === 'ready');
    const most = ready.length + ready.flatMap((task) => model.batchOf(task)).length;
    if (alone && claimed.length !== Math.min(command.limit, most)) return [];
    // Those that come along do so in the order of their key.
    const brought = tasks.flatMap((task) => model.batchOf(task));
    const along = tasks.filter(({ state }) => state !== 'ready');
    if (
      !isDeepStrictEqual(
        along,
        brought.filter((task, i) => along.includes(task) && i < along.length),
      )
    )
      return [];
    model.notClaimed(model.tasks);
    for (const [i, { attemptId }] of claimed.entries()) model.claim(tasks[i] as ModelTask, attemptId);
    return claimed.every(({ number }, i) => tasks[i]?.attempts.at(-1)?.number === number) ? [model] : [];
  }
  return isDeepStrictEqual(expected(command, model), answer) ? [model] : [];
}

function expected(command: Exclude<Meant, { do: 'claim' | 'move' }>, model: LifecycleModel): Answer {
  if ('attempt' in command) {
    const found = model.attempts.find(({ attempt }) => attempt.id === command.id) as {
      task: ModelTask;
      attempt: ModelAttempt;
    };
    if (command.do !== 'report') return { answer: model[command.do](found) };
    const answer = model.report(found, command.form);
    return answer === 'ResultConflict' ? { answer } : { answer, status: publicStatus(found.task.state) };
  }
  const task = model.tasks.find(({ id }) => id === command.id) as ModelTask;
  if (command.do === 'cancelRun') {
    const answer = model.cancelRun(task.run);
    return answer === 'Success' ? { answer, status: model.runs[task.run]?.status ?? '' } : { answer };
  }
  if (command.do === 'replay' && !task.letter) return { answer: 'NotFound' };
  const answer = command.do === 'cancelTask' ? model.cancelTask(task) : model.retry(task);
  return answer === 'Success' ? { answer, status: publicStatus(task.state) } : { answer };
}

function explainMove(moved: number, before: LifecycleModel, alone: boolean): LifecycleModel[] {
  const due = before.due().length;
  if (alone && moved !== due) return [];
  return subsets(due, moved).map((chosen) => {
    const model = before.clone();
    const tasks = model.due();
    // Those of a serial key get their places in the order of their times.
    for (const task of chosen.map((i) => tasks[i] as ModelTask).sort((a, b) => a.availableAt - b.availableAt))
      model.timeComes(task);
    return model;
  });
}

function subsets(n: number, size: number): number[][] {
  if (size === 0) return [[]];
  if (n < size) return [];
  return [...subsets(n - 1, size), ...subsets(n - 1, size - 1).map((rest) => [...rest, n - 1])];
}
