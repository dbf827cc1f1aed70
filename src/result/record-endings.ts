import type { Queryable } from '../db/pool.ts';
import { dependencyFailed, inputTemplateFailed } from '../domain/execution-error.ts';
import { type AttemptHistory, isProviderKind } from '../domain/retry-policy.ts';
import type { TaskStatus } from '../domain/status.ts';
import { applyTransition, releaseSerialTasks } from './apply-transition.sql.ts';
import { bookUsage } from './book-usage.sql.ts';
import { type Decision, decideResult, type Ending } from './decide-result.ts';
import { holdBackThrottles } from './hold-back-throttles.sql.ts';
import { leaveDeadLetters } from './leave-dead-letters.sql.ts';
import { materialize, type Produced } from './materialize.sql.ts';
import type { Report } from './parse-result.ts';
import {
  type AttemptRow,
  type LockedRun,
  lockRunsOf,
  readAttempts,
  readHistories,
} from './read-attempts.sql.ts';
import { type RunTask, readRunTasks } from './read-run-tasks.sql.ts';
import { rememberReports } from './remember-reports.sql.ts';
import { renderInputs } from './render-inputs.ts';
import { finishedRunStatus, resolveDependents } from './resolve-dependents.ts';
import { type Place, takePlaces } from './take-places.sql.ts';
import { TransitionBuilder } from './transition-builder.ts';

/** An attempt that comes to an end: reported by its worker, or found by the sweeper. */
export interface AttemptEnding {
  attemptId: string;
  /** Null: the sweeper's. */
  report: Report | null;
}

export type Recorded =
  | { answer: 'APPLIED' | 'REPLAYED' | 'SUPERSEDED'; taskId: string; taskStatus: TaskStatus }
  | { answer: 'CONFLICT' | 'UNKNOWN' | 'NOTHING' }
  /** Another attempt of the same task is in the group: it comes first, this one again after it. */
  | { answer: 'AGAIN' };

const noHistory: AttemptHistory = { counted: 0, uncountedInRow: 0, lostInRow: 0 };
const defaultHoldBackSeconds = 30;

/** Records a group of endings in one transaction: what each changes, and what follows from it for steps and runs. */
export async function recordEndings(tx: Queryable, endings: readonly AttemptEnding[]): Promise<Recorded[]> {
  const ids = endings.map((ending) => ending.attemptId);
  await holdBackThrottles(tx, endings.flatMap(providerPause));
  const runs = await lockRunsOf(tx, ids);
  const attempts = new Map((await readAttempts(tx, ids)).map((row) => [row.attemptId, row]));
  const decided = await decide(tx, endings, attempts);

  const builder = new TransitionBuilder();
  const late = decided.filter(({ decision }) => decision.answer === 'APPLIED' && decision.late);
  const places =
    late.length > 0
      ? await takePlaces(
          tx,
          late.map(({ row }) => row.taskId),
        )
      : new Map<string, Place>();
  for (const { row, report, decision } of decided)
    builder.addDecision(row, report, decision, places.get(row.taskId));

  await addConsequences(tx, builder, runs, decided);
  await applyTransition(tx, builder.transition);
  await releaseSerialTasks(tx, builder.endedSerialTasks);
  await leaveDeadLetters(tx, builder.deadLetters);
  await rememberReports(tx, decided.flatMap(lateReport));
  await bookUsage(tx, decided.flatMap(usageToBook));
  await materialize(tx, decided.flatMap(production));

  const byAttempt = new Map(decided.map((d) => [d.row.attemptId, d]));
  return endings.map(({ attemptId }) => {
    const row = attempts.get(attemptId);
    if (!row) return { answer: 'UNKNOWN' };
    const made = byAttempt.get(attemptId);
    if (!made) return { answer: 'AGAIN' };
    const { answer } = made.decision;
    if (answer === 'CONFLICT' || answer === 'NOTHING') return { answer };
    return { answer, taskId: row.taskId, taskStatus: builder.statusOf(row.taskId) ?? currentStatus(row) };
  });
}

interface Decided {
  row: AttemptRow;
  report: Report | null;
  decision: Decision;
}

async function decide(
  tx: Queryable,
  endings: readonly AttemptEnding[],
  attempts: ReadonlyMap<string, AttemptRow>,
): Promise<Decided[]> {
  const first = new Map<string, { row: AttemptRow; report: Report | null }>();
  for (const { attemptId, report } of endings) {
    const row = attempts.get(attemptId);
    if (row && !first.has(row.taskId)) first.set(row.taskId, { row, report });
  }
  const candidates = [...first.values()];
  const withHistory = candidates.filter(
    ({ row, report }) => row.attempt === 'RUNNING' && report?.status !== 'COMPLETED',
  );
  const histories = await readHistories(
    tx,
    withHistory.map(({ row }) => row),
  );
  return candidates.map(({ row, report }) => {
    const ending: Ending = report ? { by: 'REPORT', ...report } : { by: 'SWEEPER' };
    const history = histories.get(row.taskId) ?? noHistory;
    return { row, report, decision: decideResult(ending, { ...row, history }, Math.random()) };
  });
}

/** Steps that wait for tasks that ended, and the runs of all of them. */
async function addConsequences(
  tx: Queryable,
  builder: TransitionBuilder,
  runs: ReadonlyMap<string, LockedRun>,
  decided: readonly Decided[],
): Promise<void> {
  const touched = [...runs.values()].filter((run) => builder.endedIn(run.id).length > 0);
  // Where nothing waits and no other task is, what is known already decides.
  const needsTasks = touched.filter((run) => {
    const ended = builder.endedIn(run.id).length;
    return run.blockedTasks > 0 || (run.openTasks === ended && run.totalTasks > ended);
  });
  const tasks = await readRunTasks(
    tx,
    needsTasks.map((run) => run.id),
  );
  const byRun = new Map<string, RunTask[]>(needsTasks.map((run) => [run.id, []]));
  for (const task of tasks)
    byRun.get(task.runId)?.push({ ...task, state: builder.stateOf(task.id) ?? task.state });

  await unblock(tx, builder, byRun);
  const rows = new Map(decided.map(({ row }) => [row.taskId, row]));
  for (const run of touched) {
    const open = run.openTasks - builder.endedIn(run.id).length;
    const known = byRun
      .get(run.id)
      ?.map((task) => ({ ...task, state: builder.stateOf(task.id) ?? task.state }));
    const states =
      known ??
      builder
        .endedIn(run.id)
        .map(({ taskId, state }) => ({ state, optional: rows.get(taskId)?.optional ?? false }));
    builder.addRun(run, open === 0 ? finishedRunStatus(states, run.cancelRequested) : null, (taskId) => {
      const task = known?.find((t) => t.id === taskId);
      return (task ?? rows.get(taskId))?.optional ?? false;
    });
  }
}

/** Enqueues or fails the blocked tasks whose dependencies are over, until nothing more follows. */
async function unblock(
  tx: Queryable,
  builder: TransitionBuilder,
  byRun: ReadonlyMap<string, RunTask[]>,
): Promise<void> {
  for (;;) {
    const unblocked: RunTask[] = [];
    for (const tasks of byRun.values()) {
      const { unblocked: ready, failed } = resolveDependents(tasks);
      const byId = new Map(tasks.map((task) => [task.id, task]));
      for (const { id, steps } of failed) {
        const task = byId.get(id);
        if (task) builder.failBlocked(task, dependencyFailed(steps));
      }
      for (const id of ready) unblocked.push(byId.get(id) as RunTask);
    }
    let failedTemplates = false;
    const inputs = await renderInputs(tx, unblocked, builder.freshEnds);
    for (const task of unblocked) {
      const rendered = inputs.get(task.id);
      if (rendered && 'failure' in rendered) {
        builder.failBlocked(task, inputTemplateFailed(rendered.failure));
        failedTemplates = true;
      } else builder.enqueueBlocked(task, rendered?.input ?? null);
    }
    for (const tasks of byRun.values())
      for (const task of tasks) task.state = builder.stateOf(task.id) ?? task.state;
    if (!failedTemplates) return;
  }
}

const providerPause = ({ attemptId, report }: AttemptEnding) => {
  const error = report?.error;
  return error && isProviderKind(error.kind)
    ? [{ attemptId, seconds: error.retryAfterSeconds ?? defaultHoldBackSeconds, throttle: error.throttle }]
    : [];
};

/** Reports of attempts that had ended already: kept with them, so that a repeated report is known. */
const lateReport = ({ row, report, decision }: Decided) =>
  report && (decision.answer === 'SUPERSEDED' || (decision.answer === 'APPLIED' && decision.late))
    ? [{ attemptId: row.attemptId, report }]
    : [];

/** The money was spent, whatever becomes of the result; only a repeated one tells nothing new. */
const usageToBook = ({ row, report, decision }: Decided) =>
  report && (decision.answer === 'APPLIED' || decision.answer === 'SUPERSEDED')
    ? [{ attemptId: row.attemptId, usage: report.usage }]
    : [];

const production = ({ row, report, decision }: Decided): Produced[] =>
  report?.status === 'COMPLETED' && decision.answer === 'APPLIED' && report.materializations.length > 0
    ? [{ taskId: row.taskId, attemptId: row.attemptId, materializations: report.materializations }]
    : [];

const currentStatus = (row: AttemptRow): TaskStatus =>
  row.task === 'OPEN' ? (row.leased ? 'PROCESSING' : 'ENQUEUED') : row.task;
