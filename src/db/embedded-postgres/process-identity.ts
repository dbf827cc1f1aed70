import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { errorCode, unlessMissing } from './error.ts';

const execFileAsync = promisify(execFile);
const tokenPattern = /^(\d+)-([0-9a-z]+)-[0-9a-f]+$/;

/**
 * When the process started, in a form that differs for every process that ever
 * has this pid, also across reboots. Undefined if no such process lives; a
 * zombie counts as dead, since only its parent can make it go away.
 */
export async function processStartMark(pid: number): Promise<string | undefined> {
  return process.platform === 'linux' ? linuxStartMark(pid) : psStartMark(pid);
}

/** The arguments of a live process joined by blanks; undefined if no such process lives. */
export async function commandLine(pid: number): Promise<string | undefined> {
  if ((await processStartMark(pid)) === undefined) return undefined;
  if (process.platform !== 'linux') return ps(pid, 'command=');
  const raw = await readProcessFile(`/proc/${pid}/cmdline`);
  return raw?.split('\0').join(' ').trim();
}

/** A name, unique for ever, of something this process holds for as long as it lives. */
export async function newToken(): Promise<string> {
  return `${process.pid}-${await processStartMark(process.pid)}-${randomBytes(6).toString('hex')}`;
}

/** Whether the process that made the token still lives; undefined if the text is not a token. */
export async function isTokenLive(token: string): Promise<boolean | undefined> {
  const [, pid, startMark] = tokenPattern.exec(token) ?? [];
  if (pid === undefined) return undefined;
  return (await processStartMark(Number(pid))) === startMark;
}

/** The pid in a token, for messages. */
export function pidOfToken(token: string): string {
  return tokenPattern.exec(token)?.[1] ?? 'unknown';
}

let bootMark: Promise<string> | undefined;

async function linuxStartMark(pid: number): Promise<string | undefined> {
  const stat = await readProcessFile(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The second field, the command name, may contain blanks and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, startTicks] = [fields[0], fields[19]];
  if (state === 'Z' || state === 'X' || startTicks === undefined) return undefined;
  // Start times count from boot, so on their own they could repeat after one.
  bootMark ??= readBootMark();
  return `${await bootMark}t${startTicks}`;
}

async function readBootMark(): Promise<string> {
  const bootId = await unlessMissing(readFile('/proc/sys/kernel/random/boot_id', 'utf8'));
  return bootId?.slice(0, 8) ?? '';
}

async function readProcessFile(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const code = errorCode(error);
    // ESRCH: the process ended between open and read.
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
}

async function psStartMark(pid: number): Promise<string | undefined> {
  const line = await ps(pid, 'stat=,lstart=');
  const [, state, started] = /^(\S+)\s+(.*)$/.exec(line ?? '') ?? [];
  if (state === undefined || started === undefined || state.startsWith('Z')) return undefined;
  return Date.parse(`${started} UTC`).toString(36);
}

async function ps(pid: number, format: string): Promise<string | undefined> {
  try {
    const { stdout } = await execFileAsync('ps', ['-ww', '-p', String(pid), '-o', format], {
      env: { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' },
    });
    return stdout.trim();
  } catch (error) {
    // ps exits with 1 if there is no such process; its absence has a textual code.
    if (errorCode(error) === undefined) return undefined;
    throw error;
  }
}
