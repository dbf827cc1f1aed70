import { isDeepStrictEqual } from 'node:util';
import type { Answer } from './carry-out.ts';
import type { Meant } from './commands.ts';
import type { LifecycleModel } from './lifecycle-model.ts';
import { type ModelAttempt, type ModelTask, publicStatus } from './lifecycle-rules.ts';

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
  const answer =
    command.do === 'setPriority'
      ? model.setPriority(task, command.priority)
      : model[command.do === 'replay' ? 'retry' : command.do](task);
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
