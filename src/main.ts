import pino from 'pino';
import { startApp } from './app.ts';
import { readConfig } from './config.ts';
import { describeConfig } from './describe-config.ts';
import { explainStartError } from './start-error.ts';
import { stopOnSignal } from './stop-on-signal.ts';

/** Starts the server of this process and stops it on SIGINT or SIGTERM, also while it is starting. */
async function main(): Promise<void> {
  const config = readConfig();
  const log = pino({ level: config.logLevel });
  for (const line of describeConfig(config)) console.log(line);
  const starting = startApp({ config, log, onProgress: (message) => console.log(`runplane: ${message}`) });
  stopOnSignal(starting, {
    stopping: () => console.log('runplane: stopping, handing work back'),
    stopped: () => console.log('runplane: stopped'),
  });
  const app = await starting;
  console.log(`slots per replica: ${app.pools.map(({ name, slots }) => `${name} ${slots}`).join(', ')}`);
  console.log(`runplane ready on ${app.url ?? 'no port (the api role is off)'}`);
}

main().catch((error: unknown) => {
  console.error(`runplane: ${explainStartError(error)}`);
  process.exitCode = 1;
});
