import { toPublicId } from '../../src/domain/ids.ts';
import { actor, ControlPlane, type ControlPlaneOptions } from '../support/control-plane.ts';

/** A mutation of the schema that is audited: how it is called so that it changes something, and so that it does not. */
export interface AuditCase {
  /** What the entry says was done. */
  action: string;
  /** Arguments that change something once. Where the field takes a reason, it is given besides. */
  changes: string;
  /** The target of the entry. */
  target: string | RegExp;
  /** Arguments that change nothing then, or are refused; those of `changes` too, unless each call is a new one. */
  nothing: string[];
  isNewEachTime?: true;
}

/** What clients and workers do is not audited: their runs, events and attempts tell of it. */
export const notAudited = [
  'launchRun',
  'launchRuns',
  'publishEvent',
  'publishEvents',
  'claimTasks',
  'extendLeases',
  'reportResult',
  'reportResults',
  'appendAttemptEvents',
];

const later = new Date(Date.UTC(2999, 0));

/** Objects of every kind that operators act on, each for one mutation alone; a text stands in all their payloads. */
export async function prepareAuditCases(
  text = 'text',
  options: ControlPlaneOptions = {},
): Promise<{
  plane: ControlPlane;
  cases: Record<string, AuditCase>;
}> {
  const plane = await ControlPlane.start(options);
  const { configuration, intake, apiTokens } = plane.services;
  await plane.agent('a');
  await plane.agent('busy');
  await plane.job('one', ['a']);
  await configuration.saveQueue({ name: 'q', pool: 'core' }, actor);
  await configuration.saveQueue({ name: 'stopped', pool: 'core' }, actor);
  await configuration.pauseQueue({ name: 'stopped' }, actor);
  await plane.agent('halted');
  await configuration.pauseAgent({ name: 'halted' }, actor);
  await configuration.saveRoute({ name: 'gone', topic: 'x', job: 'one' }, actor);
  const token = await apiTokens.create({ name: 'revoked', scopes: ['READ'] }, actor);
  if (token.kind !== 'CreateApiTokenSuccess') throw new Error(token.message);
  const tokenId = toPublicId('tok', token.id);

  const launch = async (end: 'COMPLETED' | 'FAILED' | null, input: object = {}) => {
    const run = await plane.launch('one', { config: { text }, ...input });
    if (end)
      for (const task of await plane.claim(['a']))
        await plane.report(task, {
          status: end,
          output: end === 'COMPLETED' ? { text } : undefined,
          error: end === 'FAILED' ? { code: 'NO', message: text, kind: 'PERMANENT' } : null,
        });
    const [row] = await plane.rows<{ task: string; letter: string | null }>(
      `select t.id as task, d.id as letter from runplane.tasks t left join runplane.dead_letters d on d.task_id = t.id
        where t.run_id = $1`,
      [run],
    );
    return {
      run: toPublicId('run', run),
      task: toPublicId('task', row?.task ?? ''),
      letter: row?.letter ? toPublicId('dlq', row.letter) : '',
    };
  };
  const failed = () => launch('FAILED');
  const [published] = await intake.publishEvents([{ topic: 'replayed', payload: { text } }]);
  if (published?.kind !== 'PublishEventSuccess') throw new Error('nothing was published');
  const event = toPublicId('evt', published.eventId);
  await configuration.saveRoute({ name: 'new', topic: 'replayed', job: 'one' }, actor);

  const none = { run: toPublicId('run', published.eventId), task: toPublicId('task', published.eventId) };
  // Those that fail come first: nothing else may be there to claim.
  const [retried, retriedByFilter, replayed, replayedByFilter, purged, rerun] = [
    await failed(),
    await failed(),
    await failed(),
    await failed(),
    await failed(),
    await failed(),
  ];
  const deleted = await launch('COMPLETED');
  const cancelled = await launch(null, { availableAt: later });
  const [taskOfRun, tasksByFilter, runsByFilter, scheduled, ordered] = [
    await launch(null, { availableAt: later }),
    await launch(null, { availableAt: later }),
    await launch(null, { availableAt: later }),
    await launch(null, { availableAt: later }),
    await launch(null, { availableAt: later }),
  ];

  const byId = (noun: 'run' | 'task', action: string, id: string, more = ''): AuditCase => ({
    action,
    changes: `${noun}Id: "${id}" ${more}`,
    target: id,
    nothing: [`${noun}Id: "${none[noun]}" ${more}`, `${noun}Id: "x" ${more}`],
  });
  const byFilter = (action: string, filter: string, more = ''): AuditCase => ({
    action: `${action}.bulk`,
    changes: `filter: { ${filter} } ${more}`,
    target: 'filter',
    nothing: [`filter: {} ${more}`, `filter: { ids: [] } ${more}`],
  });
  const save = (noun: string, name: string, fields: string, wrong: string): AuditCase => ({
    action: `${noun}.save`,
    changes: `input: { name: "${name}" ${fields} }`,
    target: name,
    nothing: [`input: { name: "" ${fields} }`, `input: { name: "${name}" ${wrong} }`],
  });
  const byName = (action: string, name: string): AuditCase => ({
    action,
    changes: `name: "${name}"`,
    target: name,
    nothing: ['name: "none"'],
  });

  const cases: Record<string, AuditCase> = {
    cancelRun: byId('run', 'run.cancel', cancelled.run),
    cancelRuns: byFilter('run.cancel', `ids: ["${runsByFilter.run}"]`),
    cancelTask: byId('task', 'task.cancel', taskOfRun.task),
    cancelTasks: byFilter('task.cancel', `ids: ["${tasksByFilter.task}"]`),
    runTaskNow: byId('task', 'task.run_now', scheduled.task),
    setTaskPriority: byId('task', 'task.set_priority', ordered.task, 'priority: 7'),
    retryTask: byId('task', 'task.retry', retried.task),
    retryTasks: byFilter('task.retry', `ids: ["${retriedByFilter.task}"]`),
    deleteTask: byId('task', 'task.delete', deleted.task),
    replayDeadLetter: {
      action: 'dead_letter.replay',
      changes: `id: "${replayed.letter}"`,
      target: replayed.task,
      nothing: ['id: "x"'],
    },
    replayDeadLetters: byFilter('dead_letter.replay', `ids: ["${replayedByFilter.letter}"]`),
    purgeDeadLetters: byFilter('dead_letter.purge', `ids: ["${purged.letter}"]`),
    replayEvent: { action: 'event.replay', changes: `id: "${event}"`, target: event, nothing: ['id: "x"'] },
    rerun: {
      action: 'run.rerun',
      changes: `input: { runId: "${rerun.run}", idempotencyKey: "k" }`,
      target: rerun.run,
      nothing: [
        `input: { runId: "${rerun.run}", idempotencyKey: "k", priority: 3 }`,
        `input: { runId: "${none.run}" }`,
      ],
    },
    pauseQueue: byName('queue.pause', 'q'),
    resumeQueue: byName('queue.resume', 'stopped'),
    pauseAgent: byName('agent.pause', 'busy'),
    resumeAgent: byName('agent.resume', 'halted'),
    saveJob: save(
      'job',
      'new',
      'steps: [{ name: "a", agent: "a" }]',
      'steps: [{ name: "a", agent: "none" }]',
    ),
    saveAgent: save('agent', 'new', 'dispatch: { pull: {} }', 'dispatch: { pull: {} }, ifVersion: 7'),
    saveThrottle: save('throttle', 'new', 'maxConcurrentTasks: 1', 'maxConcurrentTasks: -1'),
    saveQueue: save('queue', 'new', 'pool: "core"', 'pool: "none"'),
    savePool: save('pool', 'new', 'slotsPerReplica: 1', 'slotsPerReplica: 100000'),
    saveRoute: save('route', 'another', 'topic: "y", job: "one"', 'topic: "y", job: "none"'),
    deleteRoute: byName('route.delete', 'gone'),
    createApiToken: {
      action: 'api_token.create',
      // Nobody grants a scope that they lack.
      changes: 'input: { name: "t", scopes: [ADMIN] }',
      target: /^tok_/,
      nothing: ['input: { name: "", scopes: [READ] }', 'input: { name: "t", scopes: [] }'],
      isNewEachTime: true,
    },
    revokeApiToken: {
      action: 'api_token.revoke',
      changes: `id: "${tokenId}"`,
      target: tokenId,
      nothing: ['id: "x"'],
    },
  };
  return { plane, cases };
}
