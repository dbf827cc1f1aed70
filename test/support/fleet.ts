import { freePort } from './free-port.ts';
import { type Process, startProcess } from './processes.ts';

export interface Acknowledged {
  reported: string;
  outcome: string;
  taskId: string;
}
type Start = () => Promise<Process>;

/** Servers and workers on one database, all processes of their own, that can be killed and started again. */
export class Fleet {
  readonly servers: string[];
  readonly #starts: Start[];
  #running: Process[] = [];
  /** What those wrote that are no more. */
  readonly #outputs: string[] = [];

  private constructor(servers: string[], starts: Start[]) {
    this.servers = servers;
    this.#starts = starts;
  }

  /** Two servers that answer clients, one that executes the agent `inline`, and pull workers of the agent `pull`. */
  static async start(databaseUrl: string, workers: number): Promise<Fleet> {
    const ports = await Promise.all([freePort(), freePort()]);
    const servers = ports.map((port) => `http://127.0.0.1:${port}`);
    const starts: Start[] = [
      ...ports.map(
        (port): Start =>
          () =>
            startProcess('src/main.ts', [], /runplane ready/, {
              DATABASE_URL: databaseUrl,
              RUNPLANE_PORT: String(port),
              LOG_LEVEL: 'error',
              // It would repair what was lost, so that nobody sees that it was.
              RUNPLANE_HOUSEKEEPING: 'off',
            }),
      ),
      () => startProcess('test/support/replica.ts', [databaseUrl], /ready/),
      ...Array.from(
        { length: workers },
        (): Start => () =>
          startProcess('test/support/pull-worker.ts', [servers.join(','), 'pull', '4'], /ready/),
      ),
    ];
    const fleet = new Fleet(servers, starts);
    fleet.#running = await Promise.all(starts.map((start) => start()));
    return fleet;
  }

  get size(): number {
    return this.#starts.length;
  }

  process(i: number): Process {
    return this.#running[i] as Process;
  }

  /** Fails when a process came to an end that nobody killed. */
  expectAlive(): void {
    for (const { child, output } of this.#running)
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(
          `${child.spawnargs.join(' ')} ended by itself (${child.exitCode ?? child.signalCode}): ${output()}`,
        );
  }

  /** Kills a process without a word, and starts it again. */
  async restart(i: number): Promise<void> {
    await this.#end(i);
    this.#running[i] = await (this.#starts[i] as Start)();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#running.map((_, i) => this.#end(i)));
  }

  async #end(i: number): Promise<void> {
    const process = this.process(i);
    await process.end('SIGKILL');
    this.#outputs.push(process.output());
  }

  /** The reports that workers know to have changed something. */
  applied(): Acknowledged[] {
    const outputs = [...this.#outputs, ...this.#running.map((process) => process.output())];
    return outputs
      .flatMap((output) => output.split('\n'))
      .filter((line) => line.startsWith('{"reported"') && line.endsWith('}'))
      .map((line) => JSON.parse(line) as Acknowledged)
      .filter(({ outcome }) => outcome === 'APPLIED');
  }

  /** Launches runs, at whichever server answers, until each is acknowledged. */
  async launch(
    inputs: readonly { job: string; idempotencyKey: string; config?: object }[],
  ): Promise<string[]> {
    for (let i = 0; ; i++) {
      try {
        const response = await fetch(`${this.servers[i % this.servers.length]}/graphql`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({
            query:
              'mutation ($inputs: [LaunchRunInput!]!) { launchRuns(inputs: $inputs) { ... on LaunchRunSuccess { runId } } }',
            variables: { inputs },
          }),
          signal: AbortSignal.timeout(10_000),
        });
        const { data } = (await response.json()) as { data?: { launchRuns: { runId?: string }[] } };
        const ids = data?.launchRuns.map(({ runId }) => runId) ?? [];
        if (ids.length > 0 && ids.every((id) => id !== undefined)) return ids;
      } catch {
        // The one that was asked is being killed: the other one, or the same one again.
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
