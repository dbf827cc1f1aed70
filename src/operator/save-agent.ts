import type { Queryable } from '../db/pool.ts';
import { limits } from '../domain/limits.ts';
import { parseNames } from '../domain/names.ts';
import { InvalidInputError } from '../domain/problems.ts';
import { defaultQueue } from '../domain/registry.ts';
import type { RetryPolicy } from '../domain/retry-policy.ts';
import { parseDecimal, parseInteger, parseOptionalInteger } from '../domain/scalars.ts';
import { parseName, parseOptionalName } from '../domain/text.ts';
import { asJson } from './audit.ts';
import { fillWindow } from './fill-window.sql.ts';
import { maxInteger, parseEach, parseOptionalText } from './parse-fields.ts';
import { parseRetryPolicy } from './parse-retry-policy.ts';
import { type Reference, readRow } from './rows.ts';
import type { ObjectKind } from './save.ts';
import type { DispatchInput, SaveAgentInput } from './types.ts';

interface AgentSpec {
  description: string | null;
  dispatchKind: 'PULL' | 'INLINE';
  /** Of an inline agent only. */
  handler: string | null;
  /** Of a pull agent only. */
  batchBySerialKey: boolean;
  queue: string;
  /** Sorted: all must have room, so their order means nothing. */
  throttles: string[];
  maxConcurrentTasks: number | null;
  retryPolicy: RetryPolicy;
  leaseSeconds: number;
  timeoutSeconds: number | null;
  defaultModel: string | null;
  computeCostPerHour: string | null;
}

const defaultLeaseSeconds = 60;

export const agentKind: ObjectKind<SaveAgentInput, AgentSpec> = {
  noun: 'agent',
  parse: (input) => {
    const { dispatch, ...fields } = parseEach({
      dispatch: () => parseDispatch(input.dispatch),
      description: () => parseOptionalText(input.description, 'description'),
      queue: () => parseName(input.queue ?? defaultQueue, 'queue'),
      throttles: () => parseNames(input.throttles, 'throttles', limits.throttlesOfAgent).sort(),
      maxConcurrentTasks: () =>
        parseOptionalInteger(input.maxConcurrentTasks, 'maxConcurrentTasks', 0, maxInteger),
      retryPolicy: () => parseRetryPolicy(input.retryPolicy, 'retryPolicy'),
      leaseSeconds: () =>
        parseInteger(
          input.leaseSeconds ?? defaultLeaseSeconds,
          'leaseSeconds',
          limits.leaseSeconds.min,
          limits.leaseSeconds.max,
        ),
      timeoutSeconds: () =>
        parseOptionalInteger(input.timeoutSeconds, 'timeoutSeconds', 1, limits.timeoutSeconds),
      defaultModel: () => parseOptionalName(input.defaultModel, 'defaultModel'),
      computeCostPerHour: () => parseDecimal(input.computeCostPerHour, 'computeCostPerHour'),
    });
    return { ...fields, ...dispatch };
  },

  references: (spec) => [
    { noun: 'queue', name: spec.queue, field: 'queue' },
    ...spec.throttles.map((name): Reference => ({ noun: 'throttle', name, field: 'throttles' })),
  ],

  read: async (tx, id) => {
    const row = await readRow<AgentSpec>(
      tx,
      `select a.description, a.dispatch_kind as "dispatchKind", a.handler,
              a.batch_by_serial_key as "batchBySerialKey", q.name as queue,
              array(select t.name from runplane.agent_throttles x join runplane.throttles t on t.id = x.throttle_id
                     where x.agent_id = a.id) as throttles,
              a.max_concurrent_tasks as "maxConcurrentTasks", a.retry_policy as "retryPolicy",
              a.lease_seconds as "leaseSeconds", a.timeout_seconds as "timeoutSeconds",
              a.default_model as "defaultModel", trim_scale(a.compute_cost_per_hour) as "computeCostPerHour"
         from runplane.agents a join runplane.queues q on q.id = a.queue_id where a.id = $1`,
      id,
    );
    return { ...row, throttles: row.throttles.sort() };
  },

  columns: (spec, idOf) => ({
    description: spec.description,
    dispatch_kind: spec.dispatchKind,
    handler: spec.handler,
    batch_by_serial_key: spec.batchBySerialKey,
    queue_id: idOf('queue', spec.queue),
    max_concurrent_tasks: spec.maxConcurrentTasks,
    retry_policy: asJson(spec.retryPolicy),
    lease_seconds: spec.leaseSeconds,
    timeout_seconds: spec.timeoutSeconds,
    default_model: spec.defaultModel,
    compute_cost_per_hour: spec.computeCostPerHour,
  }),

  writeParts: async (tx, object, spec, idOf, before) => {
    const joined = await writeThrottles(
      tx,
      object.id,
      spec.throttles.map((name) => idOf('throttle', name)),
    );
    // One that is new has used nothing yet.
    if (before)
      for (const throttleId of joined)
        await fillWindow(tx, { throttleId, agentIds: [object.id], tokens: true, requests: true });
  },

  settle: async (tx, saved) => {
    const moved = saved.filter(({ before, spec }) => before && before.queue !== spec.queue);
    if (moved.length > 0)
      await carryTurns(
        tx,
        moved.map(({ id }) => id),
      );
  },
};

/**
 * Claims lock the agent, then its throttles by id. Taking the same locks in the same order, here the throttles that the
 * agent leaves and joins alike, makes each claim commit either before this change or under it. Answers those it joins.
 */
async function writeThrottles(
  tx: Queryable,
  agentId: string,
  throttleIds: readonly string[],
): Promise<string[]> {
  const values = [agentId, throttleIds];
  await tx.query({
    text: `select from runplane.throttles t
            where t.id = any($2) or t.id in (select x.throttle_id from runplane.agent_throttles x where x.agent_id = $1)
            order by t.id for no key update`,
    values,
  });
  await tx.query({
    text: 'delete from runplane.agent_throttles where agent_id = $1 and throttle_id <> all($2)',
    values,
  });
  const { rows } = await tx.query<{ id: string }>({
    text: `insert into runplane.agent_throttles (agent_id, throttle_id) select $1, t from unnest($2::uuid[]) t
           on conflict do nothing returning throttle_id as id`,
    values,
  });
  return rows.map(({ id }) => id).sort();
}

/**
 * Turns count within a queue: the new one is at least where the agent's tasks are, or these would wait for it to come that
 * far. Turns of queues are written in the order in which claims write them, for all agents at once.
 */
async function carryTurns(tx: Queryable, agentIds: readonly string[]): Promise<void> {
  await tx.query({
    text: `with now as materialized (select runplane.clock() as at),
                own as (select a.queue_id, -r.priority_key as priority, min(r.turn) as turn
                          from runplane.agents a join runplane.ready_tasks r on r.agent_id = a.id
                         where a.id = any($1) group by a.id, a.queue_id, r.priority_key)
           insert into runplane.lane_turns as l (queue_id, priority, turn, at)
           select o.queue_id, o.priority, o.turn, now.at
             from (select queue_id, priority, max(turn) as turn from own group by queue_id, priority) o cross join now
            order by o.queue_id, o.priority
           on conflict (queue_id, priority) do update set turn = greatest(l.turn, excluded.turn)`,
    values: [agentIds],
  });
  // The other queue may be at an earlier turn, which its new tasks then follow.
  await tx.query({
    text: `update runplane.scan_starts
              set priority_key = null, turn = null, rank = null, next_priority_key = null, next_turn = null, next_xid = null
            where agent_id = any($1)`,
    values: [agentIds],
  });
}

function parseDispatch(
  dispatch: DispatchInput,
): Pick<AgentSpec, 'dispatchKind' | 'handler' | 'batchBySerialKey'> {
  const { pull, inline, webhook } = dispatch;
  if ([pull, inline, webhook].filter((given) => given != null).length !== 1) {
    throw new InvalidInputError('dispatch', 'dispatch must have exactly one of pull, inline and webhook.');
  }
  if (inline)
    return {
      dispatchKind: 'INLINE',
      handler: parseName(inline.handler, 'dispatch.inline.handler'),
      batchBySerialKey: false,
    };
  if (webhook) {
    throw new InvalidInputError(
      'dispatch.webhook',
      'dispatch.webhook is not served yet; use pull or inline.',
    );
  }
  return { dispatchKind: 'PULL', handler: null, batchBySerialKey: pull?.batchBySerialKey ?? false };
}
