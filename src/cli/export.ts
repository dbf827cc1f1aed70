import { stringify } from 'yaml';
import { exportManifest } from '../operator/manifest/export.ts';
import type { ManifestEntry } from '../operator/manifest/types.ts';
import { type ExitCode, exitCodes, parseArguments } from './command.ts';
import { withDatabase } from './installation.ts';

export const help = `usage: runplane export

Writes the configuration to standard output as a manifest: throttles, pools, queues, agents, jobs and routes, by name,
without what is the default anyway. Applied where it comes from it changes nothing (docs/manifest.md).

Works on the database of the settings (DATABASE_URL, or the embedded one in RUNPLANE_DATA_DIR).
`;

export async function run(args: string[]): Promise<ExitCode> {
  parseArguments(args, {});
  const entries = await withDatabase({ changes: false }, exportManifest);
  process.stdout.write(manifestText(entries));
  return exitCodes.done;
}

/** A list for each kind that there is something of. */
export function manifestText(entries: readonly ManifestEntry[]): string {
  const sections: Record<string, ManifestEntry['input'][]> = {};
  for (const { noun, input } of entries) (sections[`${noun}s`] ??= []).push(input);
  return stringify(sections, { lineWidth: 0, aliasDuplicateObjects: false });
}
