import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { spawnApiReplica } from './support/api-replica.ts';
import { answer, compareAll, measureOptions, type Place, percentile, rounds } from './support/compare.ts';
import { operation } from './support/operations.ts';
import { prepareProduct } from './support/product.ts';
import { createDatabase, settle } from './support/server.ts';
import { startWatchers } from './support/watchers.ts';

/**
 * How long it takes from sending a launch until a stream tells of it, at the replica that took it and at another one. The
 * launch itself is part of it, so what passes between the commit and the stream is less.
 */
interface SeenOptions extends Place {
  probes: number;
  /** Launches a second beside the probes. */
  beside: number;
  /** Streams of everything at each replica. */
  streams: number;
}

const watchAll = operation('BenchBesideProbes');
const watchProbes = operation('BenchProbes');
const launchOne = operation('BenchProbe');

const post = (url: string, query: string, accept: string, variables: object = {}): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept },
    body: JSON.stringify({ query, variables }),
  });

async function launch(url: string, labels: object[]): Promise<string> {
  const response = await post(url, launchOne, 'application/json', { labels });
  const { data } = (await response.json()) as { data?: { launchRun?: { runId?: string } } };
  const runId = data?.launchRun?.runId;
  if (runId === undefined) throw new Error('a launch was refused');
  return runId;
}

/** When a stream told of runs, by their ids. */
async function watchFor(url: string): Promise<Map<string, number>> {
  const seen = new Map<string, number>();
  const { body } = await post(url, watchProbes, 'text/event-stream');
  if (!body) throw new Error('no stream');
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  await reader.read();
  const read = async (): Promise<void> => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const at = performance.now();
      for (const [runId] of value.matchAll(/run_\w+/g)) if (!seen.has(runId)) seen.set(runId, at);
    }
  };
  // It ends with its server, in the middle.
  read().catch(() => {});
  return seen;
}

async function measure({ server, database, probes, beside, streams }: SeenOptions): Promise<void> {
  const url = await createDatabase(server, database);
  await prepareProduct(url, { slots: null, throttled: false });
  await settle(url);
  const replicas = await Promise.all([spawnApiReplica(url), spawnApiReplica(url)]);
  const [own, other] = replicas;
  const marker = 'no message has this';
  const watchers =
    streams === 0
      ? []
      : await Promise.all(
          replicas.map((replica) => startWatchers({ url: replica.url, query: watchAll, streams, marker })),
        );
  const [seenHere, seenThere] = await Promise.all([watchFor(own.url), watchFor(other.url)]);

  let over = false;
  const background = async (): Promise<void> => {
    const start = performance.now();
    const under: Promise<unknown>[] = [];
    for (let launched = 0; !over; launched++) {
      await sleep(start + (launched * 1000) / beside - performance.now());
      under.push(launch(own.url, []));
    }
    await Promise.all(under);
  };
  const load = beside > 0 ? background() : null;
  const here: number[] = [];
  const there: number[] = [];
  for (let probe = -20; probe < probes; probe++) {
    const sent = performance.now();
    const runId = await launch(own.url, [{ key: 'probe', value: 'yes' }]);
    while (!seenHere.has(runId) || !seenThere.has(runId)) await sleep(1);
    // The first ones warm up.
    if (probe >= 0) {
      here.push((seenHere.get(runId) ?? 0) - sent);
      there.push((seenThere.get(runId) ?? 0) - sent);
    }
    await sleep(15 + Math.random() * 10);
  }
  over = true;
  await load;
  for (const each of watchers) each.stop();
  for (const replica of replicas) await replica.stop();
  answer({
    hereP50: percentile(here, 50),
    hereP99: percentile(here, 99),
    thereP50: percentile(there, 50),
    thereP99: percentile(there, 99),
  });
}

async function main(): Promise<void> {
  const given = measureOptions<SeenOptions>();
  if (given) return measure(given);
  const probes = Number(process.env.BENCH_PROBES ?? 300);
  await compareAll(fileURLToPath(import.meta.url), [
    {
      title: `${probes} launches, from sending each until a stream tells of it`,
      figures: [
        { name: 'hereP50', unit: 'ms at the same replica, median' },
        { name: 'hereP99', unit: 'ms at the same replica, 99th percentile' },
        { name: 'thereP50', unit: 'ms at another replica, median' },
        { name: 'thereP99', unit: 'ms at another replica, 99th percentile' },
      ],
      ratios: 'to the first',
      rounds,
      subjects: [
        { label: 'nothing else', options: { probes, beside: 0, streams: 0 } },
        {
          label: '100 launches/s, 20 streams of everything each',
          options: { probes, beside: 100, streams: 20 },
        },
      ],
    },
  ]);
}

await main();
