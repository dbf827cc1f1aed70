/**
 * Where the places of a task are, as SQL conditions between the row of a place and t, the task's row. A ready and a
 * delayed row are found by the key that the task's row tells; a row with another key is one that nobody finds.
 */
export const isReadyRowOf = (r: string): string =>
  `${r}.agent_id = t.agent_id and ${r}.priority_key = -t.priority and ${r}.turn = t.turn and ${r}.rank = t.rank and ${r}.task_id = t.id`;

export const isDelayedRowOf = (d: string): string =>
  `${d}.available_at = t.available_at and ${d}.task_id = t.id`;

/** Of t: whether it is ready, delayed, leased, or waits behind another task of its serial key. */
export const isReady = `exists (select from runplane.ready_tasks p where ${isReadyRowOf('p')})`;
export const isDelayed = `exists (select from runplane.delayed_tasks p where ${isDelayedRowOf('p')})`;
const isLeased = 'exists (select from runplane.leases p where p.task_id = t.id)';
/** One that was claimed together with the task before it, or backs off after that, is not there to wait for its key. */
export const isBehindKey = `(not ${isLeased} and not ${isDelayed} and exists (
  select from runplane.serial_tasks p where p.task_id = t.id and exists (
    select from runplane.serial_tasks b where b.agent_id = p.agent_id and b.serial_key = p.serial_key and b.rank < p.rank)))`;

export const placeCount = `(${isReady}::int + ${isDelayed}::int + ${isLeased}::int + ${isBehindKey}::int)`;
