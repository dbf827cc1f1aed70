/*
 * What workers ask for, as SQL, for whoever writes it down and whoever asks about it.
 */

/**
 * That an ask still stands: the worker asked for it in the last 60 s in which it was heard of, or it is busy with what it
 * got by it, and so will ask again.
 */
export const askStands = (ask: string, lastSeenAt: string): string => `(
  ${ask}.asked_at > ${lastSeenAt} - interval '60 s'
  or exists (select from runplane.leases x
              where x.worker_id = ${ask}.worker_id and x.claim_key is not null and x.pool_id is not distinct from ${ask}.pool_id
                and (${ask}.agent_ids is null or x.agent_id = any(${ask}.agent_ids)) offset 0))`;

/** That an ask, beside its pool if it names one, is for an agent of a queue. */
export const asksFor = (ask: string, pool: string, agent: string, queue: string): string => `(
  case when ${ask}.agent_ids is null then ${agent}.dispatch_kind = 'PULL' else ${agent}.id = any(${ask}.agent_ids) end
  and (${ask}.pool_id is null or runplane.serves(${pool}.id, ${pool}.elastic, ${queue}.pool_id, ${queue}.shared_weight)))`;
