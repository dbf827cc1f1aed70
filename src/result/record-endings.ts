import type { Queryable } from '../db/pool.ts';
import type { InvalidInput } from '../domain/problems.ts';
import { type AttemptHistory, isProviderKind } from '../domain/retry-policy.ts';
import type { TaskStatus } from '../domain/status.ts';
import type { TraceContext } from '../domain/trace-context.ts';
import type { EndedAttempt } from '../domain/work-observer.ts';
import { bookUsage } from './book-usage.sql.ts';
import { addConsequences, writeTransition } from './consequences.ts';
import { type Decision, decideResult, type Ending } from './decide-result.ts';
import { holdBackThrottles } from './hold-back-throttles.sql.ts';
import { lockRunsOfAttempts } from './lock-runs.sql.ts';
import { materialize, type Produced } from './materialize.sql.ts';
import { type Loss, nameLosses } from './name-losses.sql.ts';
import type { Report } from './parse-result.ts';
import { type AttemptRow, lockLeases, readAttempts, readHistories } from './read-attempts.sql.ts';
import { readEndedAttempts } from './read-ended-attempts.sql.ts';
import { rememberReports } from './remember-reports.sql.ts';
import { type Spawning, spawnTasks } from './spawn-tasks.ts';
import { type Place, takePlaces } from './take-places.sql.ts';
import { TransitionBuilder } from './transition-builder.ts';

/** An attempt that comes to an end: reported by its worker, or found by the sweeper. */
export interface AttemptEnding {
  attemptId: string;
  /** Null: the sweeper's. */
  report: Report | null;
  /** Where somebody hears of it: when the report came, and from which trace. */
  told?: { at: number; traceContext: TraceContext | null };
}

export type Recorded =
  | { answer: 'APPLIED' | 'REPLAYED' | 'SUPERSEDED'; taskId: string; taskStatus: TaskStatus }
  | { answer: 'CONFLICT' | 'UNKNOWN' | 'NOTHING' }
  /** What it spawns is impossible: nothing changed, the attempt goes on. */
  | { answer: 'REFUSED'; problem: InvalidInput }
  /** Another attempt of the same task is in the group: it comes first, this one again after it. */
  | { answer: 'AGAIN' };

const idOf = ({ attemptId }: AttemptEnding): string => attemptId;
const noHistory: AttemptHistory = { counted: 0, uncountedInRow: 0, lostInRow: 0 };
const defaultHoldBackSeconds = 30;

/** What somebody hears of: everything, or only attempts by which work was lost. */
export type Heard = 'EVERYTHING' | 'LOSSES';

export interface Endings {
  /** In the order of the endings. */
  recorded: Recorded[];
  /** At least those attempts by which work was lost. */
  losses: readonly Loss[];
  /** Where everything is heard of: the attempts, those first that ended now. */
  attempts: EndedAttempt[];
  endedNow: ReadonlySet<string>;
}

/** Records a group of endings in one transaction: what each changes, and what follows from it for steps and runs. */
export async function recordEndings(
  tx: Queryable,
  endings: readonly AttemptEnding[],
  heard: Heard = 'LOSSES',
): Promise<Endings> {
  const ids = endings.map(idOf);
  await holdBackThrottles(tx, endings.flatMap(providerPause));
  const mayRepeat = endings.filter(({ report }) => report?.status !== 'COMPLETED').map(idOf);
  // One after the other, each with a snapshot of its own, though none waits here for the answer to the one before.
  const [runs, , attemptRows] = await Promise.all([
    lockRunsOfAttempts(tx, ids),
    lockLeases(tx, ids),
    readAttempts(tx, ids, mayRepeat),
  ]);
  const known = new Map(attemptRows.map((row) => [row.attemptId, row]));
  const all = await decide(tx, endings, known);
  const { rows: spawned, delays, refused } = await spawnTasks(tx, all.flatMap(spawning), runs);
  const decided = refused.size === 0 ? all : all.filter(({ row }) => !refused.has(row.taskId));

  const builder = new TransitionBuilder({ repeatsAlone: endings.length > 1 });
  builder.addSpawned(spawned, delays);
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

  await addConsequences(tx, builder, runs, { spawned });
  await writeTransition(tx, builder);
  await rememberReports(tx, decided.flatMap(lateReport));
  await bookUsage(tx, decided.flatMap(usageToBook));
  await materialize(tx, decided.flatMap(production));

  const { attemptEnds } = builder.transition;
  const endedNow = new Set(attemptEnds.map((end) => end.attempt_id));
  const attempts =
    heard === 'EVERYTHING'
      ? await readEndedAttempts(tx, [...endedNow, ...ids.filter((id) => !endedNow.has(id))])
      : [];
  const losses =
    heard === 'EVERYTHING'
      ? attempts.filter(({ attemptId }) => endedNow.has(attemptId))
      : await nameLosses(tx, attemptEnds, known);

  const byAttempt = new Map(decided.map((d) => [d.row.attemptId, d]));
  const first = new Set(all.map(({ row }) => row.attemptId));
  const recorded = endings.map(({ attemptId }): Recorded => {
    const row = known.get(attemptId);
    if (!row) return { answer: 'UNKNOWN' };
    const problem = refused.get(row.taskId);
    if (problem) return first.has(attemptId) ? { answer: 'REFUSED', problem } : { answer: 'AGAIN' };
    const made = byAttempt.get(attemptId);
    if (!made) return { answer: 'AGAIN' };
    const { answer } = made.decision;
    if (answer === 'CONFLICT' || answer === 'NOTHING') return { answer };
    return { answer, taskId: row.taskId, taskStatus: builder.statusOf(row.taskId) ?? currentStatus(row) };
  });
  return { recorded, losses, attempts, endedNow };
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
    const ending: Ending = report ? { by: 'REPORT', report } : { by: 'SWEEPER' };
    const history = histories.get(row.taskId) ?? noHistory;
    return { row, report, decision: decideResult(ending, row, history, Math.random()) };
  });
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

const spawning = ({ row, report, decision }: Decided): Spawning[] =>
  report && decision.answer === 'APPLIED' && report.spawn.length > 0
    ? [{ taskId: row.taskId, runId: row.runId, tasks: report.spawn }]
    : [];

const production = ({ row, report, decision }: Decided): Produced[] =>
  report?.status === 'COMPLETED' && decision.answer === 'APPLIED' && report.materializations.length > 0
    ? [{ taskId: row.taskId, attemptId: row.attemptId, materializations: report.materializations }]
    : [];

const currentStatus = (row: AttemptRow): TaskStatus =>
  row.task === 'OPEN' ? (row.leased ? 'PROCESSING' : 'ENQUEUED') : row.task;
