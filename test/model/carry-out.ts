import { actor, type ControlPlane } from '../support/control-plane.ts';
import type { Meant } from './commands.ts';
import { agents, forms } from './kinds.ts';

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
    case 'runNow':
      return taskAnswer(await actions.runTaskNow({ taskId: command.id }, actor));
    case 'setPriority':
      return taskAnswer(
        await actions.setTaskPriority({ taskId: command.id, priority: command.priority }, actor),
      );
    case 'delete':
      return taskAnswer(await actions.deleteTask({ taskId: command.id }, actor));
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
