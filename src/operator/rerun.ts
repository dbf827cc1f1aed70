import { encodeCursor } from '../changelog/cursor.ts';
import type { Queryable } from '../db/pool.ts';
import { transactionByKey } from '../db/transaction.ts';
import { orUnavailable } from '../db/unavailable.ts';
import { digest, hashKey } from '../domain/digest.ts';
import { newUuid, toPublicId } from '../domain/ids.ts';
import type { JsonObject } from '../domain/json.ts';
import {
  type IllegalState,
  InvalidInputError,
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
import { insertRerun, type OldRun, readOldRun, readOldTasks } from './insert-rerun.sql.ts';
import { planRerun, type RerunTask } from './plan-rerun.ts';
import type { RerunInput, RerunOutcome } from './repeat-types.ts';
import { tellRerun } from './tell-rerun.ts';
import type { Actions, Actor } from './types.ts';

interface RerunRequest {
  runId: string;
  onlyFailed: boolean;
  config: JsonObject | null;
  priority: number | null;
  key: IdempotencyKey | null;
  traceContext: TraceContext | null;
}

export const createRerun = (
  context: ActionsContext & { epoch: string; observer: WorkObserver | null },
): Pick<Actions, 'rerun'> => ({
  rerun: async (input, actor) => {
    const request = parsed(() => parseRerun(input));
    if (isInvalidInput(request)) return request;
    const { observer } = context;
    const startedAt = observer ? preciseNow() : 0;
    const outcome = await orUnavailable(rerunOnce(context, request, actor));
    if (observer) await tellRerun(context.db, observer, request, outcome, startedAt);
    return outcome;
  },
});

/** Once for its key: when another call was faster with it, this one answers what that one made. */
async function rerunOnce(
  { db, onCommit, epoch }: ActionsContext & { epoch: string },
  request: RerunRequest,
  actor: Actor,
): Promise<RerunOutcome> {
  for (;;) {
    try {
      const outcome = await transactionByKey(db, (tx) => rerun(tx, request, epoch, actor));
      onCommit();
      return outcome;
    } catch (error) {
      // Thrown, so that nothing of the run stays.
      if (error instanceof InvalidInputError) return error.problem;
      if (!(error instanceof KeyTaken)) throw error;
    }
  }
}

async function rerun(
  tx: Queryable,
  request: RerunRequest,
  epoch: string,
  actor: Actor,
): Promise<RerunOutcome> {
  const repeated = request.key && (await answerRepeated(tx, request.key, epoch));
  if (repeated) return repeated;
  const target = toPublicId('run', request.runId);
  const old = await readOldRun(tx, request.runId);
  if (!old) return notFound('run', target);
  const refusal = refuse(old, request);
  if (refusal) return refusal;
  const tasks = planRerun(await readOldTasks(tx, request.runId), request.onlyFailed);
  if (tasks.length === 0) return nothingFailed(old.status);

  const runId = newUuid();
  const { key, onlyFailed, config } = request;
  const position = BigInt(old.position);
  if (key && (await remember(tx, [{ key, objectId: runId, position }])).size > 0) throw new KeyTaken();
  await begin(tx, runId, request, tasks);
  const takenOver = tasks.filter((task) => task.takenOver).length;
  const after = { runId: toPublicId('run', runId), onlyFailed, takenOver, configReplaced: config !== null };
  await appendAudit(tx, { actor, action: 'run.rerun', target, before: { status: old.status }, after });
  return {
    kind: 'LaunchRunSuccess',
    runId,
    replayed: false,
    cursor: encodeCursor(epoch, { xid: position, id: 0 }),
  };
}

/** Inserts the new run and enqueues what waits for nothing in it. */
async function begin(
  tx: Queryable,
  runId: string,
  { runId: oldId, config, priority, key, traceContext }: RerunRequest,
  tasks: readonly RerunTask[],
): Promise<void> {
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
    throw new InvalidInputError('config', message);
  }
  await writeTransition(tx, builder);
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
