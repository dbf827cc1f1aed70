import { encodeCursor } from '../changelog/cursor.ts';
import type { Queryable } from '../db/pool.ts';
import { transactionByKey } from '../db/transaction.ts';
import { orUnavailable } from '../db/unavailable.ts';
import { digest, hashKey } from '../domain/digest.ts';
import { newUuid, toPublicId } from '../domain/ids.ts';
import type { JsonObject } from '../domain/json.ts';
import {
  type IllegalState,
  type InvalidInput,
  invalidInput,
  isInvalidInput,
  notFound,
  parsed,
  type RunConfigValidationInvalid,
} from '../domain/problems.ts';
import { isTerminal, type RunStatus } from '../domain/status.ts';
import { parseOptionalPriority } from '../domain/task-fields.ts';
import { parseOptionalName } from '../domain/text.ts';
import { packTraceContext, parseTraceparent, type TraceContext } from '../domain/trace-context.ts';
import { preciseNow, type WorkObserver } from '../domain/work-observer.ts';
import { KeyTaken } from '../intake/admit.ts';
import { findRemembered, keyName, remember } from '../intake/idempotency.ts';
import { type IdempotencyKey, parseConfig } from '../intake/parse-launch.ts';
import { compileConfigSchema, configInvalid } from '../intake/validate-config.ts';
import { addConsequences, writeTransition } from '../result/consequences.ts';
import { lockRunsById } from '../result/lock-runs.sql.ts';
import { TransitionBuilder } from '../result/transition-builder.ts';
import type { ActionsContext } from './act.ts';
import { appendAudit } from './audit.ts';
import { insertRerun, type OldRun, readOldRun, readOldTasks, readRunToTell } from './insert-rerun.sql.ts';
import { planRerun, type RerunTask } from './plan-rerun.ts';
import type { RerunInput, RerunOutcome } from './repeat-types.ts';
import { type ToldRerun, tellRerun } from './tell-rerun.ts';
import type { Actions, Actor } from './types.ts';

interface RerunRequest {
  runId: string;
  onlyFailed: boolean;
  config: JsonObject | null;
  priority: number | null;
  key: IdempotencyKey | null;
  traceContext: TraceContext | null;
}

interface RerunContext extends ActionsContext {
  epoch: string;
  observer: WorkObserver | null;
}

/** Thrown, so that nothing of the run stays. */
class Undone extends Error {
  readonly told: ToldRerun;
  constructor(told: ToldRerun) {
    super('The transaction is rolled back.');
    this.told = told;
  }
}

export const createRerun = (context: RerunContext): Pick<Actions, 'rerun'> => ({
  rerun: async (input, actor) => {
    const request = parsed(() => parseRerun(input));
    if (isInvalidInput(request)) return request;
    const { observer } = context;
    const startedAt = observer ? preciseNow() : 0;
    const done = await orUnavailable(rerunOnce(context, request, actor));
    const told = 'kind' in done ? { outcome: done, run: null } : done;
    if (observer) tellRerun(observer, request, told, startedAt);
    return told.outcome;
  },
});

/** Once for its key: when another call was faster with it, this one answers what that one made. */
async function rerunOnce(context: RerunContext, request: RerunRequest, actor: Actor): Promise<ToldRerun> {
  for (;;) {
    try {
      const told = await transactionByKey(context.db, (tx) => rerun(tx, request, context, actor));
      context.onCommit();
      return told;
    } catch (error) {
      if (error instanceof Undone) return error.told;
      if (!(error instanceof KeyTaken)) throw error;
    }
  }
}

/** Reads here what is told of it: after the commit nothing of it may fail any more. */
async function rerun(
  tx: Queryable,
  request: RerunRequest,
  { epoch, observer }: RerunContext,
  actor: Actor,
): Promise<ToldRerun> {
  const repeated = request.key && (await answerRepeated(tx, request.key, epoch));
  if (repeated) {
    const of = repeated.kind === 'LaunchRunSuccess' ? repeated.runId : request.runId;
    return { outcome: repeated, run: observer && (await readRunToTell(tx, of)) };
  }
  const target = toPublicId('run', request.runId);
  const old = await readOldRun(tx, request.runId);
  if (!old) return { outcome: notFound('run', target), run: null };
  const refusal = refuse(old, request);
  if (refusal) return { outcome: refusal, run: old };
  const tasks = planRerun(await readOldTasks(tx, request.runId), request.onlyFailed);
  if (tasks.length === 0) return { outcome: nothingFailed(old.status), run: old };

  const runId = newUuid();
  const { key, onlyFailed, config } = request;
  const position = BigInt(old.position);
  if (key && (await remember(tx, [{ key, objectId: runId, position }])).size > 0) throw new KeyTaken();
  const problem = await begin(tx, runId, request, tasks);
  if (problem) throw new Undone({ outcome: problem, run: old });
  const takenOver = tasks.filter((task) => task.takenOver).length;
  const after = { runId: toPublicId('run', runId), onlyFailed, takenOver, configReplaced: config !== null };
  await appendAudit(tx, { actor, action: 'run.rerun', target, before: { status: old.status }, after });
  const outcome: RerunOutcome = {
    kind: 'LaunchRunSuccess',
    runId,
    replayed: false,
    cursor: encodeCursor(epoch, { xid: position, id: 0 }),
  };
  // Its correlation id and event are the old one's, and so is its trace where none was given.
  return { outcome, run: old };
}

/** Inserts the new run and enqueues what waits for nothing in it; or says what is wrong with its config. */
async function begin(
  tx: Queryable,
  runId: string,
  { runId: oldId, config, priority, key, traceContext }: RerunRequest,
  tasks: readonly RerunTask[],
): Promise<InvalidInput | null> {
  const idempotencyKey = key?.text ?? null;
  await insertRerun(tx, {
    id: runId,
    oldId,
    config,
    idempotencyKey,
    priority,
    traceContext: traceContext && packTraceContext(traceContext),
    tasks,
  });
  const builder = new TransitionBuilder();
  await addConsequences(tx, builder, await lockRunsById(tx, [runId]), { alsoIn: new Set([runId]) });
  const failed = builder.transition.taskEnds.find((end) => end.error_code === 'INPUT_TEMPLATE_FAILED');
  if (failed) {
    const message = `The input template of a step failed for this config: ${failed.error_message}`;
    return invalidInput('config', message);
  }
  await writeTransition(tx, builder);
  return null;
}

function refuse(old: OldRun, { config }: RerunRequest): IllegalState | RunConfigValidationInvalid | null {
  if (!isTerminal(old.status)) {
    const message = `The run is ${old.status}; only completed, failed and cancelled ones can be rerun.`;
    return { kind: 'IllegalState', status: old.status, message };
  }
  const errors = config === null ? [] : compileConfigSchema(old.configSchema)(config);
  return errors.length > 0 ? configInvalid(old.job, errors) : null;
}

const nothingFailed = (status: RunStatus): IllegalState => ({
  kind: 'IllegalState',
  status,
  message: 'Nothing of the run failed; with onlyFailed: false all of it is executed again.',
});

async function answerRepeated(
  tx: Queryable,
  key: IdempotencyKey,
  epoch: string,
): Promise<RerunOutcome | null> {
  const before = (await findRemembered(tx, [key])).get(keyName(key));
  if (!before) return null;
  if (!before.digest.equals(key.digest)) {
    const message = 'This idempotency key made a rerun with another input. Use a new key for new input.';
    return { kind: 'IdempotencyConflict', existingId: before.objectId, message };
  }
  const cursor = encodeCursor(epoch, { xid: before.xid, id: 0 });
  return { kind: 'LaunchRunSuccess', runId: before.objectId, replayed: true, cursor };
}

function parseRerun(input: RerunInput): RerunRequest {
  const request = {
    runId: input.runId,
    onlyFailed: input.onlyFailed ?? true,
    config: input.config == null ? null : parseConfig(input.config),
    priority: parseOptionalPriority(input.priority, 'priority'),
  };
  const text = parseOptionalName(input.idempotencyKey, 'idempotencyKey');
  const traceContext = parseTraceparent(input.traceparent);
  if (text === null) return { ...request, key: null, traceContext };
  return {
    ...request,
    traceContext,
    key: { kind: 'rerun', scope: '', text, hash: hashKey(text), digest: digest(request) },
  };
}
