import { isDelayedRowOf, isReadyRowOf } from '../../db/task-rows.ts';

/** Of t, a row of tasks: whether it is ready, delayed, leased, or waits behind another task of its serial key. */
export const isReady = `exists (select from runplane.ready_tasks p where ${isReadyRowOf('p', 't')})`;
export const isDelayed = `exists (select from runplane.delayed_tasks p where ${isDelayedRowOf('p', 't')})`;
const isLeased = 'exists (select from runplane.leases p where p.task_id = t.id)';
/** One that was claimed together with the task before it, or backs off after that, is not there to wait for its key. */
export const isBehindKey = `(not ${isLeased} and not ${isDelayed} and exists (
  select from runplane.serial_tasks p where p.task_id = t.id and exists (
    select from runplane.serial_tasks b where b.agent_id = p.agent_id and b.serial_key = p.serial_key and b.rank < p.rank)))`;

/** In how many places t is: 1 where all is well and it is open. */
export const placeCount = `(${isReady}::int + ${isDelayed}::int + ${isLeased}::int + ${isBehindKey}::int)`;
