import type { Queryable } from '../db/pool.ts';
import { toPublicId } from '../domain/ids.ts';
import { type IllegalState, isInvalidInput, notFound, parsed } from '../domain/problems.ts';
import { parseOptionalPriority } from '../domain/task-fields.ts';
import { addDeadLetterFilter, deadLettersFrom } from '../read/dead-letters.ts';
import { addTaskFilter, tasksFrom } from '../read/task-filter.ts';
import { reopenTasks } from '../result/reopen-tasks.ts';
import { type ActionsContext, act, auditStatus, readTask, runsOfTasks } from './act.ts';
import { bulk } from './bulk.ts';
import type { Actions, Actor, TaskActionOutcome } from './types.ts';

type Retries = Pick<Actions, 'retryTask' | 'retryTasks' | 'replayDeadLetter' | 'replayDeadLetters'>;

export const createRetries = (context: ActionsContext): Retries => ({
  retryTask: ({ taskId, priority }, actor) =>
    withPriority(priority, (parsedPriority) =>
      act(context, null, (tx) => retry(tx, taskId, parsedPriority, 'task.retry', actor)),
    ),

  replayDeadLetter: ({ id, priority }, actor) =>
    withPriority(priority, (parsedPriority) =>
      act(context, null, async (tx) => {
        const { rows } = await tx.query<{ taskId: string }>({
          text: 'select task_id as "taskId" from runplane.dead_letters where id = $1',
          values: [id],
        });
        const [letter] = rows;
        if (!letter) return notFound('dead letter', toPublicId('dlq', id));
        return retry(tx, letter.taskId, parsedPriority, 'dead_letter.replay', actor);
      }),
    ),

  retryTasks: ({ priority, ...input }, actor) =>
    withPriority(priority, (parsedPriority) =>
      bulk(context, 'task.retry', input, actor, {
        from: tasksFrom,
        id: 't.id',
        where: (where) => {
          addTaskFilter(where, input.filter);
          where.and(`t.state in ('FAILED', 'CANCELLED')`);
        },
        change: (tx, ids) => retryAll(tx, ids, parsedPriority),
      }),
    ),

  replayDeadLetters: ({ priority, ...input }, actor) =>
    withPriority(priority, (parsedPriority) =>
      bulk(context, 'dead_letter.replay', input, actor, {
        from: `${deadLettersFrom} join runplane.tasks t on t.id = d.task_id`,
        id: 'd.task_id',
        where: (where) => {
          addDeadLetterFilter(where, input.filter);
          where.and(`t.state in ('FAILED', 'CANCELLED')`);
        },
        change: (tx, ids) => retryAll(tx, ids, parsedPriority),
      }),
    ),
});

async function retry(
  tx: Queryable,
  taskId: string,
  priority: number | null,
  action: string,
  actor: Actor,
): Promise<TaskActionOutcome> {
  const target = toPublicId('task', taskId);
  const task = await readTask(tx, taskId);
  if (!task) return notFound('task', target);
  if (task.status !== 'FAILED' && task.status !== 'CANCELLED') return notOver(task.status);
  const { refusals } = await reopenTasks(tx, {
    runIds: [task.runId],
    chooses: ({ id }) => id === taskId,
    priority,
  });
  const [refusal] = refusals;
  if (refusal) return refusal;
  const taskStatus = (await readTask(tx, taskId))?.status ?? task.status;
  await auditStatus(tx, actor, action, target, task.status, taskStatus, null);
  return { kind: 'TaskActionSuccess', taskId, taskStatus };
}

/** Tasks that cannot be tried again stay as they are. */
async function retryAll(
  tx: Queryable,
  taskIds: readonly string[],
  priority: number | null,
): Promise<string[]> {
  const chosen = new Set(taskIds);
  const runIds = await runsOfTasks(tx, taskIds);
  const { taskIds: reopened } = await reopenTasks(tx, {
    runIds,
    chooses: ({ id }) => chosen.has(id),
    priority,
  });
  return reopened.filter((id) => chosen.has(id));
}

const notOver = (status: string): IllegalState => ({
  kind: 'IllegalState',
  status,
  message: `The task is ${status}; only failed and cancelled ones can be retried.`,
});

async function withPriority<Outcome>(
  priority: number | null | undefined,
  run: (priority: number | null) => Promise<Outcome>,
) {
  const checked = parsed(() => parseOptionalPriority(priority, 'priority'));
  return isInvalidInput(checked) ? checked : run(checked);
}
