import { describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { faultsOf } from '../support/config-faults.ts';

describe('settings of NATS', () => {
  const url = 'nats://broker:4222';

  it('is off without a URL, whatever else is set', () => {
    expect(readConfig({ NATS_STREAMS: 'S', NATS_USER: 'me' }).nats).toBeNull();
  });

  it('reads what is set', () => {
    const seed = `SU${'A'.repeat(56)}`;
    expect(readConfig({ NATS_URL: url, NATS_NKEY: seed, NATS_TLS_CA: 'ca.pem' }).nats).toEqual({
      servers: [url],
      user: null,
      password: null,
      token: null,
      nkey: seed,
      credentials: null,
      tls: { ca: 'ca.pem', cert: null, key: null },
      streams: ['PIPELINE'],
      consumer: 'runplane',
      ackWaitSeconds: 30,
      maxDeliver: 10,
      batch: 100,
    });
  });

  it.each([
    ['NATS_URL is wrong', { NATS_URL: 'http://broker' }],
    ['NATS_NKEY is wrong', { NATS_URL: url, NATS_NKEY: 'hunter2' }],
    ['NATS_STREAMS is "A.B"', { NATS_URL: url, NATS_STREAMS: 'A.B' }],
    ['NATS_CONSUMER is "a b"', { NATS_URL: url, NATS_CONSUMER: 'a b' }],
    ['NATS_USER and NATS_PASSWORD belong together', { NATS_URL: url, NATS_USER: 'me' }],
    ['NATS_TLS_CERT and NATS_TLS_KEY belong together', { NATS_URL: url, NATS_TLS_KEY: 'k.pem' }],
    ['NATS_TOKEN and NATS_CREDENTIALS are ways', { NATS_URL: url, NATS_TOKEN: 't', NATS_CREDENTIALS: 'c' }],
    ['a user in NATS_URL and NATS_TOKEN are ways', { NATS_URL: 'nats://me:x@broker', NATS_TOKEN: 't' }],
    ['NATS_URL names different users', { NATS_URL: 'nats://me:x@one,nats://you:y@two' }],
  ])('refuses: %s', (fault, env: Record<string, string>) => {
    const faults = faultsOf(env);
    expect(faults).toEqual([expect.stringContaining(fault)]);
    expect(faults.join()).not.toMatch(/hunter2|:x@/);
  });
});
