import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { normalize } from 'node:path';
import { isServerUrl } from '../client-settings.ts';
import { readClientConfig } from '../config.ts';
import { limits } from '../domain/limits.ts';
import { topicFault } from '../domain/topic.ts';
import { CommandError, type ExitCode, exitCodes, parseArguments, UsageError } from './command.ts';
import { type EventOptions, type Format, inBatches, readEvents, type Source } from './publish/events.ts';
import type { Chunks } from './publish/pieces.ts';
import { Progress } from './publish/progress.ts';
import { requestBytes, Sender } from './publish/sender.ts';
import { type Tally, tallyOutcome } from './publish/tally.ts';

export const help = `usage: runplane publish TOPIC FILE... [--url URL] [--format json|jsonl] [--batch NAME] [--retry-for SECONDS]

Publishes events: each line of a file, or each entry of the list in a .json file (or its one value), is the payload of
one event. - is standard input. Events are sent in order, up to 500 at once, and files are read as they are sent.

Every event has an idempotency key: the payload's idempotency_key, else one that is derived from the file's name as it
is given, the line and what stands in it. So the same command may be repeated, also after it was killed: what is stored
already is not stored again. Keys are remembered for at least 7 days.

  --url URL             the server, instead of RUNPLANE_URL; its token is RUNPLANE_TOKEN
  --format json|jsonl   how files and standard input are read; by default .json files as json, all else as jsonl
  --batch NAME          a part of the derived keys: under another name the same lines are published again
  --retry-for SECONDS   how long it is tried while nothing succeeds (300)

Lines that are refused are told, and the others are published; the exit code is 1 then.
`;

const maxEvents = 500;
/** Batches stay below what a request may have, so that they are answered soon. */
const batchBytes = limits.bodyBytes / 2;
const waitMs = 1000;

export async function run(args: string[]): Promise<ExitCode> {
  const { values, positionals } = parseArguments(
    args,
    {
      url: { type: 'string' },
      format: { type: 'string' },
      batch: { type: 'string', default: '' },
      'retry-for': { type: 'string', default: '300' },
    },
    { min: 2, max: Number.POSITIVE_INFINITY },
  );
  const [topic = '', ...files] = positionals;
  const fault = topicFault(topic, false);
  if (fault) throw new UsageError(`The topic ${fault}.`);
  if (new Set(files).size < files.length) throw new UsageError('A file is named twice.');
  const { url, token } = readClientConfig();
  const server = values.url ?? url;
  if (!isServerUrl(server)) throw new UsageError('--url must be an http or https URL.');
  const retryForSeconds = Number(values['retry-for']);
  if (!(retryForSeconds >= 0)) throw new UsageError('--retry-for must be a number of seconds.');

  const sources = await openSources(files, parseFormat(values.format));
  const progress = new Progress(process.stderr, totalBytesOf(sources));
  const sender = new Sender({
    url: server,
    token,
    retryForSeconds,
    onRetry: (reason, seconds) => progress.note(`${reason} Trying again in ${seconds.toFixed(1)} s.`),
  });
  const tally: Tally = { lines: 0, published: 0, known: 0, runs: 0, refused: 0 };
  const options: EventOptions = { topic, batch: values.batch, maxBytes: limits.bodyBytes - requestBytes };
  try {
    await publishAll(sources, options, sender, tally, {
      tell: (line) => progress.note(line),
      advance: (bytes) => progress.update(tally.lines, bytes),
    });
  } finally {
    progress.end();
    process.stdout.write(summarize(topic, tally));
  }
  return tally.refused > 0 ? exitCodes.failed : exitCodes.done;
}

async function publishAll(
  sources: readonly Source[],
  options: EventOptions,
  sender: Sender,
  tally: Tally,
  { tell, advance }: { tell: (line: string) => void; advance: (bytes: number) => void },
): Promise<void> {
  let before = 0;
  for (const source of sources) {
    const found = readEvents(source, options);
    for await (const batch of inBatches(found, { maxEvents, maxBytes: batchBytes, waitMs })) {
      const outcomes = await sender.send(batch.filter((each) => 'json' in each));
      let sent = 0;
      for (const each of batch) {
        const outcome = 'json' in each ? outcomes[sent++] : null;
        const problems = outcome ? tallyOutcome(tally, outcome) : ['message' in each ? each.message : ''];
        if (!outcome) {
          tally.lines++;
          tally.refused++;
        }
        for (const problem of problems) tell(`${each.source}:${each.line}: ${problem}`);
      }
      advance(before + (batch.at(-1)?.end ?? 0));
    }
    before += source.bytes ?? 0;
  }
}

/** All are looked at before anything is published. */
async function openSources(files: readonly string[], format: Format | null): Promise<Source[]> {
  const sources: Source[] = [];
  for (const file of files) {
    const isInput = file === '-';
    sources.push({
      name: isInput ? file : normalize(file),
      format: format ?? (/\.json$/i.test(file) ? 'json' : 'jsonl'),
      bytes: isInput ? null : await sizeOf(file),
      open: () => (isInput ? process.stdin : createReadStream(file)) as Chunks,
    });
  }
  return sources;
}

const totalBytesOf = (sources: readonly Source[]): number | null =>
  sources.reduce<number | null>((sum, { bytes }) => (sum === null || bytes === null ? null : sum + bytes), 0);

async function sizeOf(file: string): Promise<number> {
  const found = await stat(file).catch((error: unknown) => {
    throw new CommandError(
      `${file} cannot be read: ${error instanceof Error ? error.message : String(error)}.`,
      {
        cause: error,
      },
    );
  });
  if (found.isDirectory()) throw new CommandError(`${file} is a directory; name the files in it.`);
  return found.size;
}

function parseFormat(format: string | undefined): Format | null {
  if (format === undefined || format === 'json' || format === 'jsonl') return format ?? null;
  throw new UsageError('--format must be json or jsonl.');
}

function summarize(topic: string, { published, known, runs, refused }: Tally): string {
  return (
    `${published + known} events on ${topic}: ${published} published, ${known} known already; ` +
    `${runs} runs launched; ${refused} lines with problems\n`
  );
}
