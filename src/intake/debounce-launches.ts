import type { Queryable } from '../db/pool.ts';
import { type Debounce, debouncedStart } from '../domain/debounce.ts';
import { groupBy } from '../domain/group-by.ts';
import { newUuid } from '../domain/ids.ts';
import { type Json, type JsonSize, sizeOfJson } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { InvalidInput, RunConfigValidationInvalid, Unavailable } from '../domain/problems.ts';
import { invalidInput } from '../domain/problems.ts';
import type { TimeBudget } from '../domain/time-bound.ts';
import { type DebounceRow, type DebounceState, lockDebounces, type WaitingRun } from './debounces.sql.ts';
import { inTime } from './in-time.ts';
import type { JobCatalog, LaunchableJob } from './job-catalog.ts';
import type { Launch } from './parse-launch.ts';
import { isPlan, planChecked, type RunPlan, refusalOf } from './plan-run.ts';

/** A launch that may change a run instead of making one. */
export interface DebouncedLaunch {
  index: number;
  launch: Launch & { debounce: Debounce };
  job: LaunchableJob;
  /** Packed; the newest one's is the run's. */
  traceContext: string | undefined;
}

export interface Settled {
  /** By the launch's index: the run that took it in, or why none did. */
  outcomes: Map<
    number,
    { runId: string; position: bigint } | InvalidInput | RunConfigValidationInvalid | Unavailable
  >;
  /** What to insert… */
  newRuns: RunPlan[];
  /** …and what waiting runs become. */
  changedRuns: RunPlan[];
  rows: DebounceRow[];
}

/** Decides what becomes of launches that are debounced, in their order. It locks what it decides about and writes nothing. */
export async function settleDebounced(
  tx: Queryable,
  catalog: JobCatalog,
  budget: TimeBudget,
  launches: readonly DebouncedLaunch[],
): Promise<Settled> {
  const settled: Settled = { outcomes: new Map(), newRuns: [], changedRuns: [], rows: [] };
  if (launches.length === 0) return settled;
  const byKey = groupBy(launches, ({ job, launch }) => keyName(job.id, launch.debounce.key));
  const keys = [...byKey.values()].flatMap(([first]) =>
    first ? { jobId: first.job.id, debounceKey: first.launch.debounce.key } : [],
  );
  const state = await lockDebounces(tx, keys);
  const waiting = new Map(state.waiting.map((run) => [keyName(run.jobId, run.debounceKey), run]));
  for (const [key, own] of byKey) {
    const run = waiting.get(key) ?? null;
    const [first] = own;
    if (!first) continue;
    // A run keeps its version: the job may have another one now.
    const job =
      run && run.jobVersion !== first.job.version
        ? await catalog.loadVersion(tx, first.job, run.jobVersion)
        : first.job;
    settle(own, job, run, state, budget, settled);
  }
  return settled;
}

const keyName = (jobId: string, debounceKey: string): string => `${jobId}/${debounceKey}`;

/** One key: each launch changes what the one before it left. */
function settle(
  launches: readonly DebouncedLaunch[],
  job: LaunchableJob,
  waiting: WaitingRun | null,
  { now, position: currentPosition }: DebounceState,
  budget: TimeBudget,
  settled: Settled,
): void {
  const runId = waiting?.runId ?? newUuid();
  const position = waiting?.position ?? currentPosition;
  const firstLaunchAt = waiting?.firstLaunchAt ?? now;
  let collected = waiting && { collect: waiting.collect, ...collectionOf(waiting.items ?? []) };
  let latest: { plan: RunPlan; startsAt: Date; debounce: Debounce } | null = null;
  for (const { index, launch, traceContext } of launches) {
    const { debounce } = launch;
    const refusal =
      inTime(budget, () => refusalOf(launch, job)) ??
      (collected && refusalToMix(collected.collect, debounce.collect));
    if (refusal) {
      settled.outcomes.set(index, refusal);
      continue;
    }
    const before: Collection = collected ?? collectionOf([]);
    const after = debounce.collect ? addTo(before, launch.config) : before;
    const config = debounce.collect ? { items: after.items } : launch.config;
    const startsAt = debouncedStart(debounce, firstLaunchAt, now);
    const plan =
      refusalOfSize(debounce, after) ??
      inTime(budget, () => planChecked({ ...launch, config, availableAt: startsAt }, job, null, runId));
    if (!isPlan(plan)) {
      settled.outcomes.set(index, plan);
      continue;
    }
    plan.run.trace_context = traceContext;
    collected = { collect: debounce.collect, ...after };
    latest = { plan, startsAt, debounce };
    settled.outcomes.set(index, { runId, position });
  }
  if (!latest) return;
  const { plan, startsAt, debounce } = latest;
  (waiting ? settled.changedRuns : settled.newRuns).push(plan);
  settled.rows.push({
    jobId: job.id,
    debounceKey: debounce.key,
    runId,
    collect: debounce.collect,
    firstLaunchAt,
    startsAt,
    position,
  });
}

const refusalToMix = (waiting: boolean, given: boolean): InvalidInput | null =>
  waiting === given
    ? null
    : invalidInput(
        'debounce.collect',
        waiting
          ? 'debounce.collect must be true: the run that waits with this key collects configs.'
          : 'debounce.collect must be false: the run that waits with this key takes the newest config.',
      );

/** Configs with their size as { items: [...] }, so that adding one does not mean to measure them all. */
interface Collection {
  items: Json[];
  size: JsonSize;
}

function collectionOf(items: Json[]): Collection {
  return { items, size: sizeOfJson({ items }) };
}

function addTo({ items, size }: Collection, config: Json): Collection {
  const added = sizeOfJson(config);
  return {
    items: [...items, config],
    size: {
      bytes: size.bytes + added.bytes + (items.length > 0 ? 1 : 0),
      nodes: size.nodes + added.nodes,
      depth: Math.max(size.depth, added.depth + 2),
    },
  };
}

function refusalOfSize({ collect }: Debounce, { size }: Collection): InvalidInput | null {
  if (!collect) return null;
  for (const [has, limit, unit] of [
    [size.bytes, limits.jsonBytes, 'bytes'],
    [size.nodes, limits.jsonNodes, 'values'],
    [size.depth, limits.jsonDepth, 'levels'],
  ] as const) {
    if (has > limit) {
      return invalidInput(
        'config',
        `With this config the run that collects for the debounce key would have ${has} ${unit}; at most ${limit} are allowed.`,
      );
    }
  }
  return null;
}
