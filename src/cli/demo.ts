import { type ExitCode, parseArguments } from './command.ts';

export const help = `usage: runplane demo [--exit]

Runs a server, publishes the messages of examples/events through its API, and shows every status change as it streams
in, then a trace and the totals. It keeps serving until ctrl-C.

  --exit   end when everything was shown
`;

export async function run(args: string[]): Promise<ExitCode> {
  const { values } = parseArguments(args, { exit: { type: 'boolean', default: false } });
  // Something to see at once: loading the server takes a moment.
  console.log('runplane demo');
  const { runDemo } = await import('./run-demo.ts');
  return runDemo(values.exit);
}
