/**
 * How other rows belong to the row of a task, as SQL. A ready and a delayed row are found by the key that the task's row
 * tells; a row with another key is one that nobody finds.
 */
export const isReadyRowOf = (ready: string, task: string): string =>
  `${ready}.agent_id = ${task}.agent_id and ${ready}.priority_key = -${task}.priority and ${ready}.turn = ${task}.turn and ${ready}.rank = ${task}.rank and ${ready}.task_id = ${task}.id`;

/** See isReadyRowOf. */
export const isDelayedRowOf = (delayed: string, task: string): string =>
  `${delayed}.available_at = ${task}.available_at and ${delayed}.task_id = ${task}.id`;

/** The steps that are not over before the task is. */
export const memberOf = (task: string): string => `coalesce(${task}.member_of, array[${task}.step])`;
