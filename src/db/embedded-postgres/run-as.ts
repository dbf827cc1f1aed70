import { type StdioOptions, spawn } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { EmbeddedPostgresError, unlessMissing } from './error.ts';

/** The user Postgres runs as if that is not the user of this process. */
export interface RunUser {
  readonly uid: number;
  readonly gid: number;
}

/** The result of a finished command; `output` holds stdout and stderr. */
export interface CommandResult {
  readonly succeeded: boolean;
  readonly output: string;
}

/**
 * Postgres refuses to run as root, so for root this is somebody else: the owner
 * of an existing cluster, else `postgres`, else `nobody`. initdb needs the user
 * to be in the user database, so a made-up uid does not do. For an ordinary
 * user the answer is undefined: Postgres runs as that user.
 */
export async function chooseRunUser(clusterDir: string): Promise<RunUser | undefined> {
  if (process.geteuid?.() !== 0) return undefined;
  const cluster = await unlessMissing(stat(clusterDir));
  if (cluster !== undefined && cluster.uid !== 0) return { uid: cluster.uid, gid: cluster.gid };
  const users = await readUsers();
  for (const name of ['postgres', '_postgres', 'nobody']) {
    const user = users.find((candidate) => candidate.name === name);
    // macOS gives nobody a negative uid, which a spawn cannot take.
    if (user !== undefined && user.uid > 0) return { uid: user.uid, gid: user.gid };
  }
  throw new EmbeddedPostgresError(
    'Postgres does not run as root, and this machine has neither a user "postgres" nor "nobody" to run it as. ' +
      'Create one (useradd --system postgres), or start Runplane as an ordinary user.',
  );
}

/** The name of a user for messages, or the number if it has none. */
export async function userName(uid: number): Promise<string> {
  const user = (await readUsers()).find((candidate) => candidate.uid === uid);
  return user === undefined ? `with the id ${uid}` : `"${user.name}"`;
}

/** Options for a child process that runs as the given user. */
export function spawnIdentity(user: RunUser | undefined): { uid?: number; gid?: number } {
  return user === undefined ? {} : { uid: user.uid, gid: user.gid };
}

/**
 * The environment of the Postgres programs: nothing of ours that a variable
 * could carry (PG* settings, secrets), and English messages, which the start
 * logic reads.
 */
export function postgresEnvironment(): NodeJS.ProcessEnv {
  const inherited = ['PATH', 'LD_LIBRARY_PATH', 'DYLD_LIBRARY_PATH'].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { ...Object.fromEntries(inherited), LC_ALL: 'C', TZ: 'UTC' };
}

/** Runs a program to its end. */
export async function runCommand(
  file: string,
  args: readonly string[],
  options: { user: RunUser | undefined; cwd: string; stdin?: number },
): Promise<CommandResult> {
  const stdio: StdioOptions = [options.stdin ?? 'ignore', 'pipe', 'pipe'];
  return new Promise((resolve) => {
    const child = spawn(file, args, {
      ...spawnIdentity(options.user),
      cwd: options.cwd,
      env: postgresEnvironment(),
      stdio,
    });
    let output = '';
    const collect = (chunk: Buffer): void => {
      output += chunk.toString('utf8');
    };
    child.stdout?.on('data', collect);
    child.stderr?.on('data', collect);
    child.on('error', (error) => resolve({ succeeded: false, output: error.message }));
    child.on('close', (code, signal) => {
      if (signal !== null) output += `\nended by ${signal}`;
      resolve({ succeeded: code === 0, output: output.trim() });
    });
  });
}

async function readUsers(): Promise<{ name: string; uid: number; gid: number }[]> {
  const passwd = (await unlessMissing(readFile('/etc/passwd', 'utf8'))) ?? '';
  return passwd.split('\n').flatMap((line) => {
    const [name, , uid, gid] = line.split(':');
    if (name === undefined || uid === undefined || gid === undefined) return [];
    return [{ name, uid: Number(uid), gid: Number(gid) }];
  });
}
