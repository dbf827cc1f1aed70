import { afterEach, beforeEach, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { startProcess } from '../support/processes.ts';

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(() => database.drop());

async function loaded(env: Record<string, string>): Promise<number> {
  const process = await startProcess('test/telemetry/loaded.ts', [], /loaded: \d+/, {
    DATABASE_URL: database.url,
    RUNPLANE_PORT: '0',
    ...env,
  });
  await process.ended;
  return Number(/loaded: (\d+)/.exec(process.output())?.[1]);
}

test('nothing of OpenTelemetry is loaded where no spans are sent', async () => {
  expect(await loaded({})).toBe(0);
  // The same question, where they are.
  expect(await loaded({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' })).toBeGreaterThan(10);
});
