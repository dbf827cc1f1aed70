/**
 * A worker as another program would be: it claims from whichever server answers, extends its leases, works as long as the
 * input says, and reports until it is answered. With `{ "hold": true }` the work lasts until SIGUSR2.
 * Prints "ready", then a line for each claim and each answer.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

const [servers = '', agent = '', slots = '1'] = process.argv.slice(2);
const addresses = servers.split(',');
const workerId = randomUUID();
/** Ends the work that is held. */
const go = once(process, 'SIGUSR2');
const heartbeatMs = 1000;

interface Assignment {
  attemptId: string;
  leaseToken: string;
  input: { ms?: number; hold?: boolean };
}
interface Answered {
  __typename: string;
  outcome?: string;
  taskId?: string;
  taskStatus?: string;
}

/**
 * Asks one server after the other until one answers; the same question is safe to repeat. The time of an answer is kept by
 * a timer that keeps the process, too: when a server is killed, fetch can lose a request without an error.
 */
async function ask<Data>(query: string, variables: object, isAnswer: (data: Data) => boolean): Promise<Data> {
  for (let i = 0; ; i++) {
    const late = new AbortController();
    const inTime = new Promise<never>((_, reject) => late.signal.addEventListener('abort', reject));
    const timer = setTimeout(() => late.abort(), 10_000);
    try {
      const answered = fetch(`${addresses[i % addresses.length]}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ query, variables }),
        signal: late.signal,
      }).then((response) => response.json());
      const { data } = (await Promise.race([answered, inTime])) as { data?: Data };
      if (data && isAnswer(data)) return data;
    } catch {
      // Killed, stopped or just starting: another one may answer.
    } finally {
      clearTimeout(timer);
    }
    await delay(100);
  }
}

async function claim(limit: number): Promise<Assignment[]> {
  const { claimTasks } = await ask<{ claimTasks: { assignments?: Assignment[] } }>(
    `mutation ($input: ClaimTasksInput!) { claimTasks(input: $input) { ... on ClaimTasksSuccess { assignments { attemptId leaseToken input } } } }`,
    {
      input: {
        workerId,
        name: `pid ${process.pid}`,
        agents: [agent],
        limit,
        waitSeconds: 2,
        idempotencyKey: randomUUID(),
      },
    },
    (data) => data.claimTasks.assignments !== undefined,
  );
  return claimTasks.assignments ?? [];
}

async function work({ attemptId, leaseToken, input }: Assignment): Promise<void> {
  console.log(JSON.stringify({ claimed: attemptId }));
  const end = new AbortController();
  const beating = beat({ attemptId, leaseToken }, end.signal);
  await (input.hold ? go : delay(input.ms ?? 0));
  const { reportResult } = await ask<{ reportResult: Answered }>(
    `mutation ($input: ReportResultInput!) { reportResult(input: $input) {
       __typename ... on ReportResultSuccess { outcome taskId taskStatus } } }`,
    { input: { attemptId, leaseToken, status: 'COMPLETED', output: { attemptId } } },
    (data) => data.reportResult.__typename !== 'Unavailable',
  );
  end.abort();
  await beating;
  console.log(JSON.stringify({ reported: attemptId, ...reportResult }));
}

async function beat(lease: { attemptId: string; leaseToken: string }, end: AbortSignal): Promise<void> {
  while (!end.aborted) {
    await delay(heartbeatMs, undefined, { signal: end }).catch(() => {});
    if (end.aborted) return;
    await ask<{ extendLeases: unknown }>(
      'mutation ($leases: [ExtendLeaseInput!]!) { extendLeases(leases: $leases) { state } }',
      { leases: [lease] },
      () => true,
    );
  }
}

console.log('ready');
let free = Number(slots);
let freed = (): void => {};
for (;;) {
  while (free === 0) await new Promise<void>((resolve) => (freed = resolve));
  for (const assignment of await claim(free)) {
    free--;
    void work(assignment).then(() => {
      free++;
      freed();
    });
  }
}
