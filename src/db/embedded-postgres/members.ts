import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isTokenLive, newToken } from './process-identity.ts';

/**
 * Enters a new member and returns its name. One process may enter several
 * times; each entry counts until it is removed or its process ends.
 */
export async function addMember(membersDir: string): Promise<string> {
  const name = await newToken();
  await writeFile(join(membersDir, name), '', { flag: 'wx', mode: 0o600 });
  return name;
}

/** Removes a member; one that is already gone is fine. */
export async function removeMember(membersDir: string, name: string): Promise<void> {
  await rm(join(membersDir, name), { force: true });
}

/** How many members live. Deletes the entries of dead ones; call it under the directory's lock. */
export async function countLiveMembers(membersDir: string): Promise<number> {
  let live = 0;
  for (const name of await readdir(membersDir)) {
    const isLive = await isTokenLive(name);
    if (isLive) live += 1;
    else if (isLive === false) await rm(join(membersDir, name), { force: true });
  }
  return live;
}
