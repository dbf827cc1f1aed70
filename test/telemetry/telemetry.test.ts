import { expect, test } from 'vitest';
import { startTelemetry } from '../../src/telemetry/telemetry.ts';

const db = () => {
  throw new Error('nobody asked');
};
const warn = (): void => {};

test('without spans and lines of the log for each step, nobody hears of work', async () => {
  const { observer } = await startTelemetry({ config: null, version: '1', db, log: { warn, debug: null } });
  expect(observer).toBeNull();
});

test('with lines for each step, somebody does', async () => {
  const { observer } = await startTelemetry({
    config: null,
    version: '1',
    db,
    log: { warn, debug: () => {} },
  });
  expect(observer).not.toBeNull();
});
