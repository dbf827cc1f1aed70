import type { Assignment } from '../../src/dispatch/types.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type Process, startProcess } from '../support/processes.ts';

const ready = /runplane ready on (http:\S+)/;

export interface ServerProcess {
  process: Process;
  /** Asks for one field of Mutation or Query, as `answer`. */
  ask<Answer>(field: string, headers?: Record<string, string>): Promise<Answer>;
  /** The lines of the log so far. */
  lines(): Record<string, unknown>[];
}

export type Claimed = Pick<Assignment, 'attemptId' | 'leaseToken' | 'traceparent' | 'number'>;

/** Servers as their users start them, on a database of their own. */
export class Servers {
  readonly database: TestDatabase;
  readonly #started: Process[] = [];

  private constructor(database: TestDatabase) {
    this.database = database;
  }

  static async create(): Promise<Servers> {
    return new Servers(await createTestDatabase());
  }

  async start(env: Record<string, string>): Promise<ServerProcess> {
    const process = await startProcess('src/main.ts', [], ready, {
      DATABASE_URL: this.database.url,
      RUNPLANE_PORT: '0',
      LOG_LEVEL: 'warn',
      ...env,
    });
    this.#started.push(process);
    const url = ready.exec(process.output())?.[1] ?? '';
    return {
      process,
      ask: async <Answer>(field: string, headers = {}) => {
        const response = await fetch(`${url}/graphql`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...headers },
          body: JSON.stringify({ query: field.startsWith('{') ? field : `mutation { answer: ${field} }` }),
        });
        const { data, errors } = (await response.json()) as { data: { answer: Answer }; errors?: unknown };
        if (errors !== undefined) throw new Error(JSON.stringify(errors));
        return data.answer;
      },
      lines: () =>
        process
          .output()
          .split('\n')
          .filter((line) => line.startsWith('{'))
          .map((line) => JSON.parse(line) as Record<string, unknown>),
    };
  }

  /** An agent that pulls, and a job of one step for it. */
  async define(server: ServerProcess, name: string, agent = ''): Promise<void> {
    const dispatch = `dispatch: { pull: {} } retryPolicy: { backoff: FIXED initialDelaySeconds: 0 maxDelaySeconds: 0 jitter: 0 maxAttempts: 2 }`;
    const saved = await server.ask<{ __typename: string }>(
      `saveAgent(input: { name: "${name}" ${dispatch} ${agent} }) { __typename }`,
    );
    if (saved.__typename !== 'SaveAgentSuccess') throw new Error(saved.__typename);
    await server.ask(
      `saveJob(input: { name: "${name}" steps: [{ name: "work" agent: "${name}" }] }) { __typename }`,
    );
  }

  async launch(server: ServerProcess, job: string, more = '', headers = {}): Promise<string> {
    const { runId } = await server.ask<{ runId: string }>(
      `launchRun(input: { job: "${job}" ${more} }) { ... on LaunchRunSuccess { runId } }`,
      headers,
    );
    return runId;
  }

  async claim(server: ServerProcess, agent: string): Promise<Claimed> {
    const { assignments } = await server.ask<{ assignments: Claimed[] }>(
      `claimTasks(input: { workerId: "w" agents: ["${agent}"] limit: 1 waitSeconds: 5 }) {
         ... on ClaimTasksSuccess { assignments { attemptId leaseToken traceparent number } } }`,
    );
    const [assignment] = assignments;
    if (!assignment) throw new Error('nothing to claim');
    return assignment;
  }

  async report(
    server: ServerProcess,
    { attemptId, leaseToken }: Claimed,
    result: string,
    headers = {},
  ): Promise<string> {
    const { outcome } = await server.ask<{ outcome: string }>(
      `reportResult(input: { attemptId: "${attemptId}" leaseToken: "${leaseToken}" ${result} }) {
         ... on ReportResultSuccess { outcome } }`,
      headers,
    );
    return outcome;
  }

  async stop(): Promise<void> {
    for (const process of this.#started) await process.end('SIGTERM');
    await this.database.drop();
  }
}
