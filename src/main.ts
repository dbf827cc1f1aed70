import pino from 'pino';
import { startApp } from './app.ts';
import { describeConfig, readConfig } from './config.ts';
import { explainStartError } from './start-error.ts';

/** Starts the server of this process and stops it on SIGINT or SIGTERM. */
async function main(): Promise<void> {
  const config = readConfig();
  const log = pino({ level: config.logLevel });
  for (const line of describeConfig(config)) console.log(line);
  const app = await startApp({ config, log, onProgress: (message) => console.log(`runplane: ${message}`) });
  console.log(`slots per replica: ${app.pools.map(({ name, slots }) => `${name} ${slots}`).join(', ')}`);

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

main().catch((error: unknown) => {
  console.error(`runplane: ${explainStartError(error)}`);
  process.exitCode = 1;
});
