import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { migrate } from '../../src/db/migrate.ts';
import type { Database } from '../../src/db/pool.ts';
import { holesOf, parseRanges, rangesOf } from '../../src/ingest/ranges.ts';
import { createConfiguration } from '../../src/operator/configuration.ts';
import { seedRegistry } from '../../src/operator/seed-registry.ts';
import { Broker } from '../support/broker.ts';
import { actor } from '../support/control-plane.ts';
import { openDatabase } from '../support/database.ts';
import { type Postgres, startDebianPostgres } from '../support/debian-postgres.ts';
import { expectInvariants } from '../support/invariants.ts';
import { type Process, startProcess } from '../support/processes.ts';
import { count } from '../support/tier.ts';

let postgres: Postgres;
let db: Database;
let broker: Broker;
let server: Process | null;
const soakMs = count({ test: 240_000, soak: 3_600_000 });
const ackWaitSeconds = count({ test: 3, soak: 30 });

beforeEach(async () => {
  postgres = await startDebianPostgres();
  await migrate(postgres.url);
  db = openDatabase(postgres.url);
  await seedRegistry(db);
  const configuration = createConfiguration({ db, onCommit: () => {} });
  await configuration.saveAgent({ name: 'a', dispatch: { pull: {} } }, actor);
  await configuration.saveJob({ name: 'one', steps: [{ name: 'a', agent: 'a' }] }, actor);
  await configuration.saveRoute({ name: 'r', topic: 'pipeline.work', job: 'one' }, actor);
  broker = await Broker.start();
  server = null;
}, 60_000);
afterEach(async () => {
  await server?.end('SIGKILL');
  await broker.stop();
  await db.close();
  postgres.remove();
});

/** The product, as a process of its own. */
async function startServer(): Promise<void> {
  server = await startProcess('src/main.ts', [], /runplane ready/, {
    DATABASE_URL: postgres.url,
    NATS_URL: broker.server.url,
    NATS_ACK_WAIT_SECONDS: String(ackWaitSeconds),
    RUNPLANE_ROLES: 'api,ingest',
    RUNPLANE_PORT: '0',
    LOG_LEVEL: 'warn',
  });
}

async function rows<Row extends object>(text: string): Promise<Row[]> {
  return (await db.query<Row & Record<string, unknown>>({ text })).rows;
}

/** Until the broker has it, whatever happens to the broker meanwhile. */
async function publishSurely(
  subject: string,
  body: string,
  header: Record<string, string> = {},
): Promise<number> {
  for (;;) {
    try {
      return await broker.publish(subject, body, header);
    } catch {
      await delay(100);
    }
  }
}

/** Everything once, in this many hands. */
async function inParallel(hands: number, items: readonly number[], work: (item: number) => Promise<unknown>) {
  const left = [...items];
  await Promise.all(
    Array.from({ length: hands }, async () => {
      for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
    }),
  );
}

const isPoison = (n: number): boolean => n % 100 === 7;
const publishNumber = (n: number): Promise<number> =>
  isPoison(n)
    ? publishSurely('pipeline.work', `poison ${n} {`, { 'Nats-Msg-Id': `poison-${n}` })
    : publishSurely('pipeline.work', JSON.stringify({ idempotency_key: `m-${n}`, n }));

/** Takes so many messages that the server would have had, and gives them back: each is delivered once more at least. */
async function giveBack(messages: number): Promise<void> {
  const given = new Set<number>();
  while (given.size < messages) {
    try {
      const consumer = await broker.js.consumers.get('PIPELINE', 'runplane');
      for await (const message of await consumer.fetch({ max_messages: 20, expires: 1000 })) {
        message.nak(Math.random() * 1000);
        given.add(message.seq);
      }
    } catch {
      // The broker or the consumer is away.
      await delay(100);
    }
  }
}

test(
  'whatever is killed, each message is one event with one run, or a rejected event that everybody sees',
  async () => {
    const messages = count({ test: 2000, soak: 100_000 });
    const disruptions = [
      ...Array<() => Promise<void>>(count({ test: 3, soak: 20 })).fill(async () => {
        await server?.end('SIGKILL');
        await startServer();
      }),
      ...Array<() => Promise<void>>(count({ test: 2, soak: 10 })).fill(async () => {
        await broker.server.end('SIGKILL');
        await broker.restart();
      }),
      ...Array<() => Promise<void>>(count({ test: 1, soak: 5 })).fill(async () => {
        await broker.jsm.consumers.delete('PIPELINE', 'runplane');
        // The next one could come before anybody noticed.
        await expect
          .poll(
            () =>
              broker.jsm.consumers.info('PIPELINE', 'runplane').then(
                () => true,
                () => false,
              ),
            {
              timeout: 60_000,
            },
          )
          .toBe(true);
      }),
    ];
    // Mixed: 11 has no factor in common with how many there are.
    const inTurn = disruptions.map((_, i) => disruptions[(i * 11) % disruptions.length]);
    inTurn.splice(disruptions.length / 2, 0, async () => {
      postgres.stop('immediate');
      await delay(count({ test: 3000, soak: 10_000 }));
      postgres.start();
    });
    await broker.stream();
    await startServer();
    const givingBack = giveBack(messages / 5);

    const numbers = Array.from({ length: messages }, (_, n) => n);
    const part = Math.ceil(messages / inTurn.length);
    for (const [i, disrupt] of inTurn.entries()) {
      const publishing = inParallel(100, numbers.slice(i * part, (i + 1) * part), publishNumber);
      await delay(Math.random() * 500);
      await disrupt?.();
      await publishing;
    }

    const poison = numbers.filter(isPoison).length;
    await givingBack;
    await broker.allAcknowledged('PIPELINE', soakMs / 2);
    // What was given back more often than it may be is read by its number.
    const unhandled = async () => {
      const { state } = await broker.jsm.streams.info('PIPELINE');
      const [stream] = await rows<{ handled: string }>('select handled::text from runplane.ingest_streams');
      return holesOf(parseRanges(stream?.handled ?? '{}'), state.last_seq);
    };
    await expect.poll(unhandled, { timeout: soakMs / 2, interval: 500 }).toEqual([]);

    const stored = await rows<{ n: number; runs: number }>(
      `select (payload ->> 'n')::int as n, (select count(*) from runplane.runs r where r.event_id = e.id)::int as runs
         from runplane.events e where rejection is null order by 1`,
    );
    expect(stored.map(({ n }) => n)).toEqual(numbers.filter((n) => !isPoison(n)));
    expect(stored.filter(({ runs }) => runs !== 1)).toEqual([]);
    const rejected = await rows<{ text: string; incidents: number }>(
      `select convert_from(raw, 'UTF8') as text,
              (select count(*) from runplane.ingest_incidents i where i.event_id = e.id and i.kind = 'POISON')::int as incidents
         from runplane.events e where rejection is not null`,
    );
    expect(rejected.map(({ text }) => text).sort()).toEqual(
      numbers
        .filter(isPoison)
        .map((n) => `poison ${n} {`)
        .sort(),
    );
    expect(rejected.filter(({ incidents }) => incidents !== 1)).toEqual([]);
    const incidents = await rows<{ kind: string; count: number }>(
      'select kind, count(*)::int from runplane.ingest_incidents group by kind order by kind',
    );
    console.log({ messages, poison, incidents });
    const of = (kind: string): number => incidents.find((row) => row.kind === kind)?.count ?? 0;
    expect({ gaps: of('GAP'), conflicts: of('CONFLICT'), poison: of('POISON') }).toEqual({
      gaps: 0,
      conflicts: 0,
      poison,
    });
    expect(of('CONSUMER_MISSING')).toBe(count({ test: 1, soak: 5 }));
    await expectInvariants(db);
  },
  soakMs,
);

test(
  'while nobody reads, what age removes is a gap of exactly these messages',
  async () => {
    await broker.stream('PIPELINE', count({ test: 2, soak: 5 }));
    await startServer();
    const published: number[] = [];
    let isPublishing = true;
    const publishing = (async () => {
      while (isPublishing) {
        published.push(await publishSurely('pipeline.work', '{}'));
        await delay(20);
      }
    })();
    const stored = async () =>
      (
        await rows<{ sequence: number }>(
          `select split_part(idempotency_key, ':', 2)::int as sequence from runplane.events order by 1`,
        )
      ).map(({ sequence }) => sequence);
    await expect.poll(async () => (await stored()).length, { timeout: 20_000 }).toBeGreaterThan(20);
    await server?.end('SIGTERM');
    const before = (await stored()).at(-1) ?? 0;
    await delay(count({ test: 4000, soak: 10_000 }));
    await startServer();
    await expect.poll(async () => (await stored()).at(-1), { timeout: 20_000 }).toBeGreaterThan(before);
    isPublishing = false;
    await publishing;
    await broker.allAcknowledged();
    const gaps = () =>
      rows<{ from: number; to: number }>(
        `select from_sequence as from, to_sequence as to from runplane.ingest_incidents where kind = 'GAP'`,
      );
    await expect.poll(gaps, { timeout: 20_000 + ackWaitSeconds * 1000 }).toHaveLength(1);
    const [gap] = await gaps();
    console.log({ published: published.length, gap });
    expect(gap?.from).toBe(before + 1);
    expect(rangesOf(await stored())).toEqual([
      { from: 1, to: before },
      { from: (gap?.to ?? 0) + 1, to: published.at(-1) },
    ]);
  },
  soakMs,
);
