import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { EmbeddedPostgresError } from './error.ts';
import { isTokenLive, newToken, pidOfToken } from './process-identity.ts';

const entryPattern = /^(choosing|ticket)-(?:(\d{12})-)?(.+)$/;

interface LockEntry {
  readonly name: string;
  readonly kind: 'choosing' | 'ticket';
  readonly number: number;
  readonly token: string;
}

/**
 * Runs the action while no other process (and no other caller in this process)
 * runs one under the same lock directory.
 *
 * This is Lamport's bakery algorithm on directory entries. Node offers no
 * flock, and the usual lock file with a pid in it cannot be taken over from a
 * dead owner without a race. Here nobody takes anything over: entries of dead
 * processes simply do not count, and deleting one can never hit a live one.
 */
export async function withDirectoryLock<T>(
  lockDir: string,
  options: { timeoutMs: number; onWait: (holderPid: string) => void },
  action: () => Promise<T>,
): Promise<T> {
  const token = await newToken();
  const ticket = await drawTicket(lockDir, token);
  try {
    await waitForTurn(lockDir, ticket, options);
    return await action();
  } finally {
    await rm(join(lockDir, ticket), { force: true });
  }
}

async function drawTicket(lockDir: string, token: string): Promise<string> {
  const choosing = join(lockDir, `choosing-${token}`);
  await writeFile(choosing, '', { flag: 'wx', mode: 0o600 });
  try {
    const taken = (await readEntries(lockDir)).map((entry) => entry.number);
    const ticket = `ticket-${String(Math.max(0, ...taken) + 1).padStart(12, '0')}-${token}`;
    await writeFile(join(lockDir, ticket), '', { flag: 'wx', mode: 0o600 });
    return ticket;
  } finally {
    await rm(choosing, { force: true });
  }
}

async function waitForTurn(
  lockDir: string,
  ownTicket: string,
  options: { timeoutMs: number; onWait: (holderPid: string) => void },
): Promise<void> {
  const startedAt = Date.now();
  let announced = false;
  for (;;) {
    const ahead = await entryAhead(lockDir, ownTicket);
    if (ahead === undefined) return;
    const waited = Date.now() - startedAt;
    if (waited > options.timeoutMs) {
      throw new EmbeddedPostgresError(
        `Process ${pidOfToken(ahead.token)} has been starting or stopping the embedded Postgres for more than ` +
          `${Math.round(waited / 1000)} s. If it hangs, end it and try again.`,
      );
    }
    if (!announced && waited > 1_000) {
      announced = true;
      options.onWait(pidOfToken(ahead.token));
    }
    await sleep(Math.min(100, 5 + waited / 10));
  }
}

/**
 * A live entry that goes first. The tickets must be listed only after a
 * listing without live choosers: whoever was choosing before then has put a
 * ticket there, and whoever starts later sees ours and draws a higher one.
 */
async function entryAhead(lockDir: string, ownTicket: string): Promise<LockEntry | undefined> {
  const choosers = (await readEntries(lockDir)).filter((entry) => entry.kind === 'choosing');
  const chooser = await firstLive(lockDir, choosers);
  if (chooser !== undefined) return chooser;
  // Names sort like (number, token), as the number has a fixed width.
  const lower = (await readEntries(lockDir)).filter(
    (entry) => entry.kind === 'ticket' && entry.name < ownTicket,
  );
  return firstLive(lockDir, lower);
}

async function firstLive(lockDir: string, entries: LockEntry[]): Promise<LockEntry | undefined> {
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (await isTokenLive(entry.token)) return entry;
    await rm(join(lockDir, entry.name), { force: true });
  }
  return undefined;
}

async function readEntries(lockDir: string): Promise<LockEntry[]> {
  return (await readdir(lockDir)).flatMap((name) => {
    const [, kind, number, token] = entryPattern.exec(name) ?? [];
    if ((kind !== 'choosing' && kind !== 'ticket') || token === undefined) return [];
    return [{ name, kind, number: Number(number ?? 0), token }];
  });
}
