import { batched, batchedPages, type LoadPage } from './batch.ts';
import type { MaterializationRow } from './materializations.ts';
import type { PageArgs } from './page.ts';
import type { Read } from './read.ts';
import type { TaskFilter } from './task-filter.ts';
import type { TaskRow } from './tasks.ts';

/** Lists of children that have a filter too: only those with the same one can be read together. */
function pagesBy<Row>(
  loads: Map<string, LoadPage<Row>>,
  filter: string,
  loadAll: Parameters<typeof batchedPages<Row>>[0],
): LoadPage<Row> {
  const load = loads.get(filter) ?? batchedPages(loadAll);
  loads.set(filter, load);
  return load;
}

/**
 * Answers the many small questions of one request together; made anew for each request. Most requests ask none, so the
 * loaders are made when the first is asked for.
 */
export function createLoaders(read: Read): Loaders {
  let loaders: Loaders | null = null;
  return new Proxy({} as Loaders, {
    get: (_, name) => {
      loaders ??= makeLoaders(read);
      return loaders[name as keyof Loaders];
    },
  });
}

function makeLoaders(read: Read) {
  const tasksByFilter = new Map<string, LoadPage<TaskRow>>();
  const materializationsByPartition = new Map<string, LoadPage<MaterializationRow>>();
  return {
    run: batched((ids) => read.runs.byIds(ids)),
    runConfig: batched((ids) => read.runs.configs(ids)),
    runTotals: batched((ids) => read.totals.ofRuns(ids)),
    runTaskCounts: batched((ids) => read.counts.ofRuns(ids)),
    /** Keys are run id, space, step. */
    taskOfStep: batched((keys) => read.tasks.ofSteps(keys)),
    tasksOfRun: (runId: string, filter: TaskFilter, page: PageArgs) =>
      pagesBy(tasksByFilter, JSON.stringify(filter), (ids, args) => read.tasks.ofRuns(ids, filter, args))(
        runId,
        page,
      ),
    task: batched((ids) => read.tasks.byIds(ids)),
    taskPayload: batched((ids) => read.tasks.payloads(ids)),
    taskTotals: batched((ids) => read.totals.ofTasks(ids)),
    taskWaiting: batched((ids) => read.waiting.ofTasks(ids)),
    taskAttemptCounts: batched((ids) => read.tasks.attemptCounts(ids)),
    delayedTask: batched((ids) => read.tasks.delayed(ids)),
    taskRetryFacts: batched((ids) => read.tasks.retryFacts(ids)),
    taskDeadLetter: batched((ids) => read.deadLetters.ofTasks(ids)),
    taskAttempts: batchedPages((ids, page) => read.attempts.ofTasks(ids, page)),
    taskDependencies: batchedPages((ids, page) => read.tasks.dependenciesOf(ids, page)),
    taskChildren: batchedPages((ids, page) => read.tasks.childrenOf(ids, page)),
    taskMaterializations: batchedPages((ids, page) => read.materializations.ofTasks(ids, page)),
    attempt: batched((ids) => read.attempts.byIds(ids)),
    attemptTotals: batched((ids) => read.totals.ofAttempts(ids)),
    attemptEvents: batchedPages((ids, page) => read.attemptEvents.ofAttempts(ids, page)),
    event: batched((ids) => read.events.byIds(ids)),
    eventPayload: batched((ids) => read.events.payloads(ids)),
    eventRuns: batchedPages((ids, page) => read.runs.ofEvents(ids, page)),
    job: batched((ids) => read.jobs.byIds(ids)),
    /** Keys are job id, space, version. */
    stepsOfVersion: batched((keys) => read.jobs.stepsOfVersions(keys)),
    jobRoutes: batched((ids) => read.routes.ofJobs(ids)),
    jobRuns: batchedPages((ids, page) => read.runs.ofJobs(ids, page)),
    agent: batched((ids) => read.agents.byIds(ids)),
    agentByName: batched((names) => read.agents.byNames(names)),
    agentThrottles: batched((ids) => read.throttles.ofAgents(ids)),
    throttle: batched((ids) => read.throttles.byIds(ids)),
    throttleAgents: batched((ids) => read.agents.ofThrottles(ids)),
    throttleUse: batched((ids) => read.throttles.use(ids)),
    route: batched((ids) => read.routes.byIds(ids)),
    queue: batched((ids) => read.queues.byIds(ids)),
    queueStats: batched((ids) => read.queues.stats(ids)),
    pool: batched((ids) => read.pools.byIds(ids)),
    poolByName: batched((names) => read.pools.byNames(names)),
    poolQueues: batched((ids) => read.queues.ofPools(ids)),
    poolUse: batched((ids) => read.pools.use(ids)),
    worker: batched((ids) => read.workers.byIds(ids)),
    workerBusy: batched((ids) => read.workers.busy(ids)),
    deadLetter: batched((ids) => read.deadLetters.byIds(ids)),
    asset: batched((ids) => read.assets.byIds(ids)),
    assetUpstream: batched((ids) => read.assets.upstreamOf(ids)),
    assetDownstream: batched((ids) => read.assets.downstreamOf(ids)),
    assetLatest: batched((ids) => read.materializations.latestOfAssets(ids)),
    assetMaterializations: (assetId: string, partition: string | null, page: PageArgs) =>
      pagesBy(materializationsByPartition, partition ?? '', (ids, args) =>
        read.materializations.ofAssets(ids, partition, args),
      )(assetId, page),
    materialization: batched((ids) => read.materializations.byIds(ids)),
    materializationMetadata: batched((ids) => read.materializations.metadata(ids)),
    materializationInputs: batchedPages((ids, page) => read.materializations.inputsOf(ids, page)),
    apiToken: batched((ids) => read.apiTokens.byIds(ids)),
    auditEntry: batched((ids) => read.audit.byIds(ids)),
  };
}

export type Loaders = ReturnType<typeof makeLoaders>;
