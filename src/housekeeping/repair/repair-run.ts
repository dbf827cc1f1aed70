import type { Queryable } from '../../db/pool.ts';
import { leaseLost } from '../../domain/execution-error.ts';
import { isTerminal } from '../../domain/status.ts';
import type { EndedAttempt } from '../../domain/work-observer.ts';
import { addConsequences, writeTransition } from '../../result/consequences.ts';
import { type LockedRun, lockRunsById } from '../../result/lock-runs.sql.ts';
import { readEndedAttempts } from '../../result/read-ended-attempts.sql.ts';
import { TransitionBuilder } from '../../result/transition-builder.ts';
import { correctRun, tallyRun } from './correct-run.sql.ts';
import { decidePlaces, type LastChange, type PlaceRepair } from './decide-places.ts';
import type { StrayRow } from './find-suspects.sql.ts';
import { type MisplacedTask, readMisplaced } from './read-misplaced.sql.ts';
import { type LostAttempt, recordLostAttempts } from './record-lost-attempts.sql.ts';
import { type Removals, removePlaces, removeStrays } from './remove-places.sql.ts';
import { add, noRepairs, type Repairs } from './repairs.ts';

export interface RepairRequest {
  runId: string;
  /** Rows of places that were seen and seem to belong nowhere. */
  strays: readonly StrayRow[];
  thresholdSeconds: number;
  /** Of tasks that an earlier repair could not enqueue again without them. */
  lastChanges: ReadonlyMap<string, LastChange>;
}

export interface RunRepair {
  repairs: Repairs;
  /** Tasks without a place whose last change has to be looked up. */
  toLookUp: string[];
  /** Attempts that the repair ended. */
  ended: EndedAttempt[];
}

const lockTimeoutSql = `set local lock_timeout = '2s'`;
const reason = 'HOUSEKEEPING';

/**
 * Repairs what does not fit together in a run, in the caller's transaction. What is wrong is read anew under the run's
 * lock, so two that repair the same run repair it once, and what came right meanwhile is left alone.
 */
export async function repairRun(tx: Queryable, request: RepairRequest): Promise<RunRepair> {
  const { runId, strays, thresholdSeconds, lastChanges } = request;
  await tx.query({ text: lockTimeoutSql });
  const run = (await lockRunsById(tx, [runId])).get(runId);
  const removed = await removeStrays(tx, runId, strays);
  const repairs = { ...noRepairs, surplusPlaces: removed.length };
  if (!run) return { repairs, toLookUp: [], ended: [] };

  const known = new Map(lastChanges);
  for (const { taskId, sequence, attempts } of removed)
    known.set(taskId, { status: 'ENQUEUED', sequence, attempts, lost: null });
  const displaced = removed.map(({ taskId }) => taskId);
  const misplaced = await readMisplaced(tx, runId, thresholdSeconds, displaced);
  const decided = misplaced.map((task) => ({ task, does: decidePlaces(task, known.get(task.id)) }));
  const tally = await tallyRun(tx, runId, thresholdSeconds);
  const miscounted =
    tally.open !== run.openTasks || tally.blocked !== run.blockedTasks || tally.total !== run.totalTasks;
  // A run that changed just now may be at work, and its wrong counters are left for a quiet moment.
  if (tally.quiet && miscounted) await correctRun(tx, run, tally);
  if (tally.quiet && (miscounted || tally.stepsMiscounted)) add(repairs, { counters: 1 });

  const builder = new TransitionBuilder();
  const lost = collect(builder, decided, repairs);
  await recordLostAttempts(tx, lost, { ...leaseLost(1), message: 'The record of its lease was missing.' });
  await removePlaces(tx, removalsOf(decided));
  const { length: enqueuedHere } = builder.transition.enqueued;
  if (!isTerminal(run.status)) await follow(tx, builder, run, tally.quiet);
  await writeTransition(tx, builder);
  const { enqueued, taskEnds, runs } = builder.transition;
  add(repairs, {
    unblockedTasks:
      enqueued.length - enqueuedHere + taskEnds.filter(({ from_status }) => from_status === 'BLOCKED').length,
    // Where a task ends as well, the run's end is what follows from that.
    runs:
      taskEnds.length > 0
        ? 0
        : runs.filter(({ to_status }) => to_status !== null && isTerminal(to_status)).length,
  });
  const toLookUp = decided.filter(({ does }) => does.some((one) => one.does === 'LOOK_UP'));
  const ended = await readEndedAttempts(tx, [
    ...lost.map(({ id }) => id),
    ...builder.transition.attemptEnds.map((end) => end.attempt_id),
  ]);
  return { repairs, toLookUp: toLookUp.map(({ task }) => task.id), ended };
}

const follow = (tx: Queryable, builder: TransitionBuilder, run: LockedRun, isQuiet: boolean): Promise<void> =>
  addConsequences(tx, builder, new Map([[run.id, run]]), { alsoIn: new Set(isQuiet ? [run.id] : []) });

interface Decided {
  task: MisplacedTask;
  does: readonly PlaceRepair[];
}

/** Puts what was decided into the transition; answers the attempts that are lost without a trace. */
function collect(builder: TransitionBuilder, decided: readonly Decided[], repairs: Repairs): LostAttempt[] {
  const lost: LostAttempt[] = [];
  for (const { task, does } of decided) {
    for (const repair of does) {
      switch (repair.does) {
        case 'END_ATTEMPT':
          builder.transition.attemptEnds.push({ attempt_id: repair.attemptId, status: 'CANCELLED' });
          add(repairs, { leases: 1 });
          break;
        case 'DROP_LEASE':
          add(repairs, { leases: 1 });
          break;
        case 'RELEASE_KEY':
          builder.endedSerialTasks.push(task.id);
          add(repairs, { surplusPlaces: 1 });
          break;
        case 'REMOVE':
          add(repairs, { surplusPlaces: 1 });
          break;
        case 'LOOK_UP':
          break;
        case 'CANCEL':
        case 'ENQUEUE': {
          const attempt = lostAttempt(task, repair.last);
          if (attempt) lost.push(attempt);
          if (repair.does === 'CANCEL')
            builder.cancelWaiting(task, repair.last.status, repair.last.sequence, reason);
          else enqueue(builder, task, repair.last);
          add(repairs, { placelessTasks: 1 });
          break;
        }
      }
    }
  }
  return lost;
}

const lostAttempt = (task: MisplacedTask, { lost, attempts }: LastChange): LostAttempt | null =>
  lost && {
    id: lost.attemptId,
    task_id: task.id,
    run_id: task.runId,
    number: attempts,
    started_at: lost.startedAt,
  };

function enqueue(builder: TransitionBuilder, task: MisplacedTask, last: LastChange): void {
  builder.transition.enqueued.push({
    task_id: task.id,
    run_id: task.runId,
    agent_id: task.agentId,
    from_status: last.status,
    sequence: last.sequence + 1,
    attempts: Math.max(last.attempts, task.attempts),
    attempt_id: last.lost?.attemptId ?? null,
    attempt_number: last.lost ? last.attempts : null,
    delay_seconds: task.delaySeconds,
    delay_reason: 'NOT_BEFORE',
    input: null,
    error_code: null,
    reason,
  });
}

function removalsOf(decided: readonly Decided[]): Removals {
  const ids = (matches: (repair: PlaceRepair) => boolean): string[] =>
    decided.filter(({ does }) => does.some(matches)).map(({ task }) => task.id);
  return {
    ready: ids((repair) => repair.does === 'REMOVE' && repair.from === 'READY'),
    delayed: ids((repair) => repair.does === 'REMOVE' && repair.from === 'DELAYED'),
    lease: ids((repair) => repair.does === 'DROP_LEASE'),
  };
}
