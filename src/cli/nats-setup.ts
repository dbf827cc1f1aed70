import { readConfig } from '../config.ts';
import { CommandError, type ExitCode, exitCodes, parseArguments } from './command.ts';

export const help = `usage: runplane nats setup

Creates the JetStream streams of NATS_STREAMS that do not exist, on the servers of NATS_URL: PIPELINE takes the subjects
pipeline.> (any other its own name in small letters), is stored in files, and keeps messages for 72 hours. A stream that
exists is left as it is; how it differs is printed.
`;

export async function run(args: string[]): Promise<ExitCode> {
  parseArguments(args, {});
  const { nats } = readConfig();
  if (!nats) throw new CommandError('NATS_URL is not set: it names the servers to create the streams on.');
  const { setUpStreams } = await import('../ingest/setup.ts');
  const results = await setUpStreams(nats).catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    throw new CommandError(`The streams cannot be set up: ${why}.`, { cause: error });
  });
  for (const { stream, created, subjects, differences } of results) {
    const told = created
      ? `is created, and takes ${subjects.join(', ')}.`
      : `exists, and is left as it is. ${differences.join(' ')}`;
    process.stdout.write(`${stream} ${told.trim()}\n`);
  }
  return exitCodes.done;
}
