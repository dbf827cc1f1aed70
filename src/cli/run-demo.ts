import { readdirSync, readFileSync } from 'node:fs';
import pino from 'pino';
import { startApp } from '../app.ts';
import { readConfig } from '../config.ts';
import { stopOnSignal } from '../stop-on-signal.ts';
import { type ExitCode, exitCodes } from './command.ts';
import {
  printChange,
  printTotals,
  printTrace,
  type RunSummary,
  type TaskChange,
  type TraceSummary,
} from './demo-report.ts';
import { GraphQLClient } from './graphql-client.ts';

/** Publishes the example events through the API and shows what becomes of them, as clients see it. */
const exampleEvents = new URL('../../examples/events/', import.meta.url);

interface PublishOutcome {
  __typename: string;
  message?: string;
  field?: string | null;
  runIds?: string[];
  replayed?: boolean;
  refusals?: { route: string; message: string }[];
}

export async function runDemo(exit: boolean): Promise<ExitCode> {
  let stopping = false;
  try {
    await show(exit, () => {
      stopping = true;
    });
    return exitCodes.done;
  } catch (error) {
    // Whatever fails because the server stops is no news.
    if (stopping) return exitCodes.done;
    throw error;
  }
}

async function show(exit: boolean, onStop: () => void): Promise<void> {
  const config = readConfig();
  const left = new AbortController();
  console.log(`starting a server${config.database.url === null ? ' with a Postgres of its own' : ''}`);
  for (const risk of config.risks) console.log(`  warning: ${risk}`);
  const starting = startApp({
    config,
    log: pino({ level: 'warn' }),
    onProgress: (message) => console.log(`  ${message}`),
  });
  stopOnSignal(starting, {
    stopping: () => {
      onStop();
      left.abort();
      console.log('\nstopping the server and its Postgres');
    },
    stopped: () => process.exit(),
  });
  const app = await starting;
  const url = app.url ?? '';
  console.log(`runplane ready on ${url}\n`);

  const client = new GraphQLClient(url, 'demo.graphql');
  const runs = await publishAndWatch(client, left);
  const correlationId = mostShared(runs.map((run) => run.correlationId));
  if (correlationId !== null) {
    printTrace(
      correlationId,
      (await client.send<{ trace: TraceSummary }>('DemoTrace', { correlationId })).trace,
    );
  }
  printTotals(runs, url);
  if (exit) await app.stop();
  else console.log('\nStill serving; ctrl-C stops the server and its Postgres.');
}

/** Both at once: what goes wrong with the one is not left unheard while the other goes on. */
async function publishAndWatch(client: GraphQLClient, left: AbortController): Promise<RunSummary[]> {
  const { changeLogCursor: after } = await client.send<{ changeLogCursor: string }>('DemoStart');
  const [runIds] = await Promise.all([
    publishAndWait(client, after, left),
    printChanges(client, after, left.signal),
  ]);
  return readRuns(client, runIds);
}

async function publishAndWait(
  client: GraphQLClient,
  after: string,
  left: AbortController,
): Promise<string[]> {
  const ends = client.stream<{ runStatusChanged: { changes: { runId: string; toStatus: string }[] } }>(
    'DemoWatchRuns',
    { after },
    left.signal,
  );
  const runIds = await publish(client);
  // Runs of events that were published before are over already: only the others are waited for.
  const before = await readRuns(client, runIds);
  const open = new Set(before.filter((run) => !isTerminal(run.status)).map((run) => run.id));
  if (open.size > 0) {
    for await (const { runStatusChanged } of ends) {
      for (const { runId, toStatus } of runStatusChanged.changes)
        if (isTerminal(toStatus)) open.delete(runId);
      if (open.size === 0) break;
    }
  }
  left.abort();
  return runIds;
}

async function printChanges(client: GraphQLClient, after: string, signal: AbortSignal): Promise<void> {
  try {
    for await (const { taskStatusChanged } of client.stream<{ taskStatusChanged: { changes: TaskChange[] } }>(
      'DemoWatch',
      { after },
      signal,
    )) {
      for (const change of taskStatusChanged.changes) printChange(change);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Publishes every line of every example file; answers the runs that they launched. */
async function publish(client: GraphQLClient): Promise<string[]> {
  const inputs = readdirSync(exampleEvents)
    .filter((file) => file.endsWith('.jsonl'))
    .sort()
    .flatMap((file) =>
      readFileSync(new URL(file, exampleEvents), 'utf8')
        .split('\n')
        .filter((line) => line !== ''),
    )
    .map((line) => JSON.parse(line) as { topic: string });
  const { publishEvents } = await client.send<{ publishEvents: PublishOutcome[] }>('DemoPublish', { inputs });
  for (const [i, outcome] of publishEvents.entries()) {
    const topic = inputs[i]?.topic ?? '';
    if (outcome.__typename !== 'PublishEventSuccess') {
      console.log(
        `refused   ${topic}: ${outcome.message ?? ''}${outcome.field ? ` (${outcome.field})` : ''}`,
      );
    } else if (outcome.replayed) console.log(`repeated  ${topic}: known already, nothing launched twice`);
    for (const { route, message } of outcome.refusals ?? [])
      console.log(`refused   ${topic} by route ${route}: ${message}`);
  }
  const runIds = publishEvents.flatMap((outcome) => outcome.runIds ?? []);
  console.log(`published ${inputs.length} events, which launched ${new Set(runIds).size} runs\n`);
  return [...new Set(runIds)];
}

async function readRuns(client: GraphQLClient, ids: readonly string[]): Promise<RunSummary[]> {
  const page = 200;
  const found: RunSummary[] = [];
  for (let at = 0; at < ids.length; at += page) {
    const { runs } = await client.send<{ runs: { nodes: RunSummary[] } }>('DemoRuns', {
      ids: ids.slice(at, at + page),
    });
    found.push(...runs.nodes);
  }
  return found;
}

const isTerminal = (status: string): boolean => ['COMPLETED', 'FAILED', 'CANCELLED'].includes(status);

function mostShared(values: readonly string[]): string | null {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0] ?? null;
}
