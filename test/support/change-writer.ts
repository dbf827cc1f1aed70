/**
 * A process with writers that launch runs and complete each other's, each with services of its own. Arguments: the
 * database, how many writers there are in all processes, the number of the first of these and how many these are, runs of
 * each, shares of the runs. Prints "ready" when it works, and "done" at its end.
 */
import { migrate } from '../../src/db/migrate.ts';
import type { Assignment } from '../../src/dispatch/types.ts';
import { newUuid, toPublicId } from '../../src/domain/ids.ts';
import { type Services, startServices } from '../../src/services.ts';
import { connectionTo } from './connection.ts';

const [url = '', ...numbers] = process.argv.slice(2);
const [all = 0, first = 0, own = 0, runs = 0, shares = 0] = numbers.map(Number);
const atOnce = 500;

const start = async (): Promise<Services> =>
  startServices({
    database: { ...connectionTo(url), maxConnections: 3 },
    listenUrl: url,
    installation: await migrate(url),
    scheduler: false,
    cancelGraceSeconds: 30,
    housekeeping: null,
    authentication: null,
    handlers: new Map(),
    serverName: `writer-${process.pid}`,
    log: { info: () => {}, warn: () => {}, error: (fields, message) => console.error(message, fields) },
  });

async function launch({ intake }: Services, agent: string): Promise<void> {
  for (let launched = 0; launched < runs; launched += atOnce) {
    const outcomes = await intake.launchRuns(
      Array.from({ length: Math.min(atOnce, runs - launched) }, () => ({
        job: agent,
        correlationId: `share-${Math.floor(Math.random() * shares)}`,
      })),
    );
    if (outcomes.some(({ kind }) => kind !== 'LaunchRunSuccess'))
      throw new Error(JSON.stringify(outcomes[0]));
  }
}

/** As many as one writer launches, which another one did. */
async function complete({ dispatch, results }: Services, agent: string): Promise<void> {
  const workerId = newUuid();
  for (let completed = 0; completed < runs; ) {
    const claimed: Assignment[] = [];
    while (claimed.length < atOnce) {
      const claim = { workerId, agents: [agent], limit: 100, waitSeconds: claimed.length === 0 ? 5 : 0 };
      const outcome = await dispatch.claimTasks(claim);
      if (outcome.kind !== 'ClaimTasksSuccess') throw new Error(JSON.stringify(outcome));
      if (outcome.assignments.length === 0) break;
      claimed.push(...outcome.assignments);
    }
    const reported = await results.reportResults(
      claimed.map(({ attemptId, leaseToken }) => ({
        attemptId: toPublicId('att', attemptId),
        leaseToken,
        status: 'COMPLETED',
      })),
    );
    if (reported.some((outcome) => outcome.kind !== 'ReportResultSuccess' || outcome.outcome !== 'APPLIED'))
      throw new Error(JSON.stringify(reported.slice(0, 3)));
    completed += claimed.length;
  }
}

const writers = await Promise.all(Array.from({ length: own }, start));
console.log('ready');
await Promise.all(
  writers.map(async (services, i) => {
    await Promise.all([
      launch(services, `agent-${first + i}`),
      complete(services, `agent-${(first + i + 1) % all}`),
    ]);
    await services.stop();
  }),
);
console.log('done');
