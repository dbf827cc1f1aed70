import { readFileSync } from 'node:fs';
import { type Command, CommandError, type ExitCode, exitCodes, UsageError } from './command.ts';

interface Entry {
  /** What it does, in a line. */
  summary: string;
  /** Only the command that is called is loaded. */
  load: () => Promise<Command>;
}

/** Every command, by the word or the words that call it. */
const commands: Readonly<Record<string, Entry>> = {
  start: { summary: 'runs the server', load: () => import('./start.ts') },
  demo: { summary: 'runs a server and shows it at work on example events', load: () => import('./demo.ts') },
  apply: { summary: 'makes the configuration what a manifest says', load: () => import('./apply.ts') },
  publish: { summary: 'publishes the lines of files as events', load: () => import('./publish.ts') },
  export: { summary: 'writes the configuration as a manifest', load: () => import('./export.ts') },
  'nats setup': {
    summary: 'creates the streams of NATS that do not exist',
    load: () => import('./nats-setup.ts'),
  },
};

const help = `usage: runplane COMMAND

${Object.entries(commands)
  .map(([name, { summary }]) => `  ${name.padEnd(12)} ${summary}`)
  .join('\n')}

runplane COMMAND --help tells more about one, and runplane --version which one this is.
Settings are read from the environment: docs/configuration.md lists them.
`;

async function main(words: string[]): Promise<ExitCode> {
  const [first = '--help'] = words;
  if (first === '--help' || first === '-h') return print(help);
  if (first === '--version') return print(`${versionOf()}\n`);
  const name = Object.keys(commands).find((known) => known.split(' ').every((word, i) => words[i] === word));
  const entry = name === undefined ? undefined : commands[name];
  if (name === undefined || !entry) {
    process.stderr.write(`runplane: There is no command ${JSON.stringify(first)}.\n\n${help}`);
    return exitCodes.wrongUsage;
  }
  const args = words.slice(name.split(' ').length);
  try {
    const command = await entry.load();
    return asksForHelp(args) ? print(command.help) : await command.run(args);
  } catch (error) {
    return fail(`runplane ${name}`, error);
  }
}

function print(text: string): ExitCode {
  process.stdout.write(text);
  return exitCodes.done;
}

async function fail(command: string, error: unknown): Promise<ExitCode> {
  if (error instanceof UsageError) {
    process.stderr.write(`${command}: ${error.message}\n${command} --help says how it is used.\n`);
    return exitCodes.wrongUsage;
  }
  const { explainStartError } = await import('../start-error.ts');
  process.stderr.write(
    `${command}: ${error instanceof CommandError ? error.message : explainStartError(error)}\n`,
  );
  return exitCodes.failed;
}

function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  const options = end === -1 ? args : args.slice(0, end);
  return options.includes('--help') || options.includes('-h');
}

const versionOf = (): string =>
  (JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string })
    .version;

const exitCode = await main(process.argv.slice(2));
// A server goes on after its command has returned, and says itself how it ended.
if (exitCode !== exitCodes.done) process.exitCode = exitCode;
