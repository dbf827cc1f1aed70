import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { tellReplicas } from '../changelog/signal.ts';
import { newUuid } from '../domain/ids.ts';
import { isInvalidInput, parsed } from '../domain/problems.ts';
import { parseName } from '../domain/text.ts';
import { applyManifest } from '../operator/manifest/apply.ts';
import { CommandError, type ExitCode, exitCodes, parseArguments, UsageError } from './command.ts';
import { withDatabase } from './installation.ts';
import { type Fault, readManifest } from './manifest/read-manifest.ts';
import { describeChange, summarize } from './manifest/report.ts';
import { systemUser } from './system-user.ts';

export const help = `usage: runplane apply -f FILE [--dry-run] [--prune] [--actor NAME]

Makes the configuration what a manifest says: throttles, pools, queues, agents, jobs and routes (docs/manifest.md).
Everything is checked first, and every problem is told with its place in the file. Then all of it is changed in one
transaction, or nothing. What is as the manifest says already stays as it is.

  -f, --file FILE   the manifest; - reads standard input
      --dry-run     tells what would be done, and does nothing
      --prune       also deletes the routes that the manifest lacks, disables the jobs, and pauses the agents and queues
      --actor NAME  who does it, for the audit log; by default the user of the system

Works on the database of the settings (DATABASE_URL, or the embedded one in RUNPLANE_DATA_DIR); servers that run on it
take the changes over at once.
`;

export async function run(args: string[]): Promise<ExitCode> {
  const { values } = parseArguments(args, {
    file: { type: 'string', short: 'f' },
    'dry-run': { type: 'boolean', default: false },
    prune: { type: 'boolean', default: false },
    actor: { type: 'string' },
  });
  const { file, prune, 'dry-run': dryRun } = values;
  if (file === undefined) throw new UsageError('The manifest is missing: -f FILE.');
  const name = actorName(values.actor);
  const manifest = readManifest(await readText(file));
  const actor = { name, requestId: newUuid() };
  const { entries, misshapen, faults, locate } = manifest;
  if (entries.length === 0 && faults.length > 0) return refuse(file, faults);
  const outcome = await withDatabase({ changes: !dryRun }, async (db) => {
    let changed = false;
    const context = { db, onCommit: () => void (changed = true) };
    const applied = await applyManifest(context, entries, {
      actor,
      prune,
      dryRun,
      misshapen,
      refused: faults.length > 0,
    });
    if (changed) await tellReplicas(db).catch(sayThatNobodyWasTold);
    return applied;
  });
  if (outcome.kind === 'Refused') return refuse(file, [...faults, ...outcome.problems.map(locate)]);
  for (const change of outcome.changes) process.stdout.write(describeChange(change));
  process.stdout.write(summarize(outcome.changes, { dryRun, actor }));
  return exitCodes.done;
}

/** What was changed stays changed, and servers find it without being told. */
function sayThatNobodyWasTold(error: unknown): void {
  const why = error instanceof Error ? error.message : String(error);
  process.stderr.write(
    `runplane apply: servers could not be told (${why}); they take the changes over within 10 seconds.\n`,
  );
}

function actorName(given: string | undefined): string {
  const name = parsed(() => parseName(given ?? systemUser(), '--actor'));
  if (isInvalidInput(name)) throw new UsageError(name.message);
  return name;
}

async function readText(file: string): Promise<string> {
  if (file === '-') return text(process.stdin);
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new CommandError(
      `The manifest cannot be read: ${error instanceof Error ? error.message : String(error)}.`,
      {
        cause: error,
      },
    );
  }
}

function refuse(file: string, faults: readonly Fault[]): ExitCode {
  const inOrder = [...faults].sort((a, b) => a.line - b.line || a.column - b.column);
  for (const { path, line, column, message } of inOrder)
    process.stderr.write(`${file}:${line}:${column}: ${path === '' ? '' : `${path}: `}${message}\n`);
  const count = inOrder.length === 1 ? 'a problem' : `${inOrder.length} problems`;
  process.stderr.write(`runplane apply: ${count}, so nothing was changed.\n`);
  return exitCodes.failed;
}
