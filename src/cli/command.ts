import { type ParseArgsConfig, parseArgs } from 'node:util';

/** Every command ends with one of these; docs/command-line.md says the same to its users. */
export const exitCodes = { done: 0, failed: 1, wrongUsage: 2 } as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** What a module that is a command exports. */
export interface Command {
  /** All of its --help. */
  help: string;
  run(args: string[]): Promise<ExitCode>;
}

/** A command that was called in a wrong way; its help says the right one. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** A command that cannot do what it is asked for, in words that name what to do. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

interface Arity {
  min: number;
  max: number;
}
const noPositionals: Arity = { min: 0, max: 0 };

/** The options and the other words of a command line. */
export function parseArguments<const Options extends NonNullable<ParseArgsConfig['options']>>(
  args: string[],
  options: Options,
  { min, max }: Arity = noPositionals,
) {
  const parsed = inUsage(() => parseArgs({ args, options, allowPositionals: max > 0, strict: true }));
  const { length } = parsed.positionals;
  if (length < min) throw new UsageError(`There are ${length} words, and at least ${min} are needed.`);
  if (length > max) throw new UsageError(`${JSON.stringify(parsed.positionals[max])} is one word too many.`);
  return parsed;
}

/** What node:util has against a command line is for its user, and no stack. */
function inUsage<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'))
      throw new UsageError(error.message, { cause: error });
    throw error;
  }
}
