import pino from 'pino';
import { startApp } from './app.ts';
import { ConfigurationError, describeConfig, readConfig } from './config.ts';
import { EmbeddedPostgresError } from './db/embedded-postgres.ts';

/** Starts the server of this process and stops it on SIGINT or SIGTERM. */
async function main(): Promise<void> {
  const config = readConfig(process.env);
  const log = pino({ level: config.logLevel });
  for (const line of describeConfig(config)) console.log(line);
  const app = await startApp({ config, log, onProgress: (message) => console.log(`runplane: ${message}`) });
  for (const { pool, slots } of app.pools) console.log(`pool ${pool}: ${slots} slots in this process`);

  let stopping = false;
  const stop = (): void => {
    if (stopping) return;
    stopping = true;
    console.log('runplane: stopping, handing work back');
    app.stop().then(
      () => console.log('runplane: stopped'),
      (error: unknown) => {
        console.error(`runplane: stopping failed: ${String(error)}`);
        process.exitCode = 1;
      },
    );
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  console.log(`runplane ready on ${app.url ?? 'no port (the api role is off)'}`);
}

/** Faults that a person can mend are told in sentences, without a stack. */
function explain(error: unknown): string {
  if (error instanceof ConfigurationError || error instanceof EmbeddedPostgresError) return error.message;
  const { code, port } = error as { code?: string; port?: number };
  if (code === 'EADDRINUSE') return `Port ${port} is in use. Stop what listens there, or set RUNPLANE_PORT (0 is any free port).`;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

main().catch((error: unknown) => {
  console.error(`runplane: ${explain(error)}`);
  process.exitCode = 1;
});
