/** Starts a server on a given database and prints which modules of OpenTelemetry are loaded then. */
import Module from 'node:module';
import { startApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';

const quiet = { info: () => {}, warn: () => {}, error: console.error };
const app = await startApp({ config: readConfig(), log: quiet, onProgress: () => {} });
await app.stop();
const { _cache: cache } = Module as unknown as { _cache: Record<string, unknown> };
console.log(`loaded: ${Object.keys(cache).filter((path) => path.includes('@opentelemetry')).length}`);
