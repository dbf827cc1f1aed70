import { type ExitCode, exitCodes, parseArguments } from './command.ts';

export const help = `usage: runplane start

Runs the server until SIGINT or SIGTERM, on DATABASE_URL or, without it, on a Postgres of its own in
RUNPLANE_DATA_DIR (.runplane).
`;

export async function run(args: string[]): Promise<ExitCode> {
  parseArguments(args, {});
  await import('../main.ts');
  return exitCodes.done;
}
