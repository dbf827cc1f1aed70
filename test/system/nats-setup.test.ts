import { afterEach, beforeEach, expect, test } from 'vitest';
import { Broker } from '../support/broker.ts';
import { runCommand } from '../support/command.ts';

let broker: Broker;
beforeEach(async () => {
  broker = await Broker.start();
});
afterEach(() => broker.stop());

const setUp = (env: Record<string, string> = {}) =>
  runCommand(['nats', 'setup'], { env: { NATS_URL: broker.server.url, ...env } });

test('a stream is created once, kept in files for 72 hours, and never changed after that', async () => {
  expect(await setUp()).toEqual({
    code: 0,
    stdout: 'PIPELINE is created, and takes pipeline.>.\n',
    stderr: '',
  });
  const { config } = await broker.jsm.streams.info('PIPELINE');
  expect(config).toMatchObject({
    subjects: ['pipeline.>'],
    storage: 'file',
    retention: 'limits',
    max_age: 72 * 3_600_000_000_000,
  });
  expect(await setUp()).toMatchObject({ code: 0, stdout: 'PIPELINE exists, and is left as it is.\n' });

  await broker.jsm.streams.update('PIPELINE', { max_age: 3_600_000_000_000, subjects: ['pipeline.>', 'x'] });
  const changed = await broker.jsm.streams.info('PIPELINE');
  expect((await setUp({ NATS_STREAMS: 'PIPELINE,BILLING' })).stdout).toBe(
    'PIPELINE exists, and is left as it is. It takes the subjects pipeline.>, x; setup would have made it pipeline.>. ' +
      'It keeps messages 1 h; setup would have made it 72 h.\nBILLING is created, and takes billing.>.\n',
  );
  expect((await broker.jsm.streams.info('PIPELINE')).config).toEqual(changed.config);
});

test('a stream that copies another one has no subjects, and is left as it is', async () => {
  await broker.stream('SOURCE');
  await broker.jsm.streams.add({ name: 'PIPELINE', mirror: { name: 'SOURCE' } });
  const { code, stdout } = await setUp();
  expect(code).toBe(0);
  expect(stdout).toContain('It takes the subjects of no one; setup would have made it pipeline.>.');
});

test('what keeps it from doing so is said, and nobody is told a password', async () => {
  expect(await setUp({ NATS_URL: '' })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('NATS_URL is not set'),
  });
  await broker.server.end('SIGTERM');
  const { code, stderr } = await setUp({ NATS_URL: broker.server.url.replace('//', '//me:hunter2@') });
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: 'runplane nats setup: The streams cannot be set up: connection refused.\n',
  });
});
