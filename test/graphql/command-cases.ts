import { newUuid, toPublicId } from '../../src/domain/ids.ts';
import { actor, type ControlPlane } from '../support/control-plane.ts';
import { prepareAuditCases } from './audit-cases.ts';
import { marker, someIds } from './payloads.ts';
import type { Known } from './walk.ts';

/** A world in which each command can succeed once, with the marker in all payloads that it touches. */
export interface CommandWorld {
  plane: ControlPlane;
  known: Known;
  /** The arguments of each command that make it succeed. */
  successes: Record<string, string>;
  /** Arguments that each problem answers, with a marker in what could be quoted. */
  problems: Record<string, { command: string; args: string }>;
}

/** The GraphQL of a value of JSON. */
const literal = (value: unknown): string => JSON.stringify(value).replace(/"(\w+)":/g, '$1:');

export async function prepareCommands(): Promise<CommandWorld> {
  const { plane, cases } = await prepareAuditCases(marker, {
    authentication: { adminToken: null, external: null },
  });
  const { configuration, intake, dispatch } = plane.services;
  await plane.agent('worker');
  await plane.job('work', [{ name: 'only', agent: 'worker', assetKey: 'asset' }]);
  await plane.job('strict', ['worker'], { type: 'object', properties: { text: { enum: [1] } } });
  await configuration.saveRoute({ name: 'works', topic: 'work', job: 'work' }, actor);
  await configuration.saveRoute({ name: 'refuses', topic: 'work', job: 'strict' }, actor);
  const config = { text: marker };

  const leased = async () => {
    await plane.launch('work', { config });
    const [assignment] = await plane.claim(['worker'], 1);
    if (!assignment) throw new Error('nothing to claim');
    return assignment;
  };
  // What is claimed again has the checkpoint of whoever had it before.
  const released = await leased();
  await dispatch.extendLeases([{ ...plane.credentials(released), checkpoint: config }]);
  const lease = async () => plane.credentials(await leased());
  const [toExtend, toTell, toReport, toReportAmongOthers] = [
    await lease(),
    await lease(),
    await lease(),
    await lease(),
  ];
  const over = await leased();
  const reported = plane.credentials(over);
  await plane.report(over, { status: 'COMPLETED', output: config });
  await plane.report(released, { status: 'RELEASED' });
  const reporting = (lease: object, output: unknown = config): string =>
    literal({ ...lease, status: 0, output }).replace('status:0', 'status: COMPLETED');
  const produced = literal([{ assetKey: 'asset', metadata: config }]);
  await intake.launchRuns([{ job: 'work', config: {}, idempotencyKey: 'used' }]);

  const successes = {
    ...Object.fromEntries(Object.entries(cases).map(([command, { changes }]) => [command, changes])),
    purgeDeadLetters: `${cases.purgeDeadLetters?.changes} reason: "old"`,
    launchRun: `input: ${literal({ job: 'work', config })}`,
    launchRuns: `inputs: [${literal({ job: 'work', config })}]`,
    publishEvent: `input: ${literal({ topic: 'work', payload: config })}`,
    publishEvents: `inputs: [${literal({ topic: 'work', payload: config })}]`,
    claimTasks: 'input: { workerId: "another", agents: ["worker"], limit: 1 }',
    extendLeases: `leases: [${literal({ ...toExtend, checkpoint: config })}]`,
    appendAttemptEvents: `lease: ${literal(toTell)} events: [${literal({ type: 'log', data: config })}]`,
    reportResult: `input: ${reporting(toReport).replace(/\}$/, `, materializations: ${produced} }`)}`,
    reportResults: `inputs: [${reporting(toReportAmongOthers)}]`,
  };
  const none = toPublicId('task', newUuid());
  const problems = {
    InvalidInput: { command: 'launchRun', args: `input: ${literal({ job: 'work', config: [marker] })}` },
    JobNotFound: { command: 'launchRun', args: `input: ${literal({ job: 'none', config })}` },
    RunConfigValidationInvalid: {
      command: 'launchRun',
      args: `input: ${literal({ job: 'strict', config })}`,
    },
    IdempotencyConflict: {
      command: 'launchRun',
      args: `input: ${literal({ job: 'work', config, idempotencyKey: 'used' })}`,
    },
    NotFound: { command: 'cancelTask', args: `taskId: "${none}"` },
    IllegalState: { command: 'retryTask', args: cases.setTaskPriority?.changes.split(' priority')[0] ?? '' },
    LeaseTokenInvalid: {
      command: 'reportResult',
      args: `input: ${reporting({ ...reported, leaseToken: marker })}`,
    },
    ResultConflict: { command: 'reportResult', args: `input: ${reporting(reported, [marker])}` },
  };
  return {
    plane,
    known: { ids: await someIds(plane), texts: ['work', 'worker', 'one', 'a'] },
    successes,
    problems,
  };
}
