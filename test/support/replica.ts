/**
 * A process of its own with the scheduler's services on a given database, for tests that need several or that kill one.
 * With a second argument it also keeps house.
 * Its handler `work` takes the milliseconds that the input asks for. Prints "ready" when it works.
 */
import { migrate } from '../../src/db/migrate.ts';
import type { InlineHandler } from '../../src/dispatch/handlers.ts';
import { startServices } from '../../src/services.ts';
import { connectionTo } from './connection.ts';

const url = process.argv[2] ?? '';
const work: InlineHandler = async ({ input }) => {
  const { ms = 0 } = input as { ms?: number };
  await new Promise((resolve) => setTimeout(resolve, ms));
  return { output: { pid: process.pid } };
};
const services = await startServices({
  database: connectionTo(url),
  listenUrl: url,
  installation: await migrate(url),
  scheduler: true,
  cancelGraceSeconds: 30,
  housekeeping:
    process.argv[3] === undefined
      ? null
      : {
          thresholdSeconds: 600,
          retentionDays: { runs: 0, events: 0, changeLog: 0, attemptEvents: 0, audit: 0 },
        },
  authentication: null,
  handlers: new Map([['work', work]]),
  serverName: `replica-${process.pid}`,
  log: { info: () => {}, warn: () => {}, error: (fields, message) => console.error(message, fields) },
});
process.on('SIGTERM', () => {
  services.stop().then(
    () => process.exit(0),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
console.log('ready');
