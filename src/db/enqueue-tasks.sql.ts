import type { Queryable } from './pool.ts';

export interface EnqueuedTask {
  taskId: string;
  sequence: number;
  attempts: number;
}

/**
 * Open tasks that have no place become claimable; one with a serial key takes, or keeps, its place behind its key. Those
 * with one that are over make room for the next of it.
 */
export async function enqueueTasks(
  tx: Queryable,
  tasks: readonly EnqueuedTask[],
  over: readonly string[] = [],
): Promise<void> {
  if (tasks.length + over.length === 0) return;
  await tx.send({
    name: 'enqueue-tasks',
    text: 'select runplane.enqueue_tasks($1, $2, $3, $4)',
    values: [tasks.map((t) => t.taskId), tasks.map((t) => t.sequence), tasks.map((t) => t.attempts), over],
  });
}
