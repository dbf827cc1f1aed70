/**
 * A process with two claimers on a given database: each claims tasks of all or a few agents, holds them for a moment and completes
 * them, with the tokens that their input tells, until SIGTERM. Prints "ready" when it works.
 */

import { migrate } from '../../src/db/migrate.ts';
import { Database } from '../../src/db/pool.ts';
import { newUuid } from '../../src/domain/ids.ts';
import { parseReport } from '../../src/result/parse-result.ts';
import { ResultRecorder } from '../../src/result/results.ts';
import { claimTasks } from '../../src/scheduler/claim-tasks.ts';
import { connectionTo } from './connection.ts';

const url = process.argv[2] ?? '';
const installation = await migrate(url);
const db = new Database({
  ...connectionTo(url),
  applicationName: 'claimer',
  onError: () => {},
});
const results = new ResultRecorder({ db, secretKey: installation.secretKey, onCommit: () => {} });
const { rows: agents } = await db.query<{ id: string }>({ text: 'select id from runplane.agents' });
const agentIds = agents.map(({ id }) => id);
let stopped = false;
process.on('SIGTERM', () => {
  stopped = true;
});

/** A worker may name a few agents: then fewer limits are looked at together. */
const someAgents = (): string[] =>
  Array.from({ length: 3 }, () => agentIds[Math.floor(Math.random() * agentIds.length)] ?? '');

async function claimer(): Promise<void> {
  const workerId = newUuid();
  while (!stopped) {
    const limit = 1 + Math.floor(Math.random() * 40);
    const claimed = await claimTasks(db, {
      agentIds: Math.random() < 0.5 ? agentIds : someAgents(),
      limit,
      workerId,
      claimKey: null,
      leaseSeconds: 300,
      poolId: null,
    });
    if (claimed.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const ends = claimed.map(({ attemptId, input }) => {
      const { tokens } = (input ?? {}) as { tokens?: number };
      const usage = tokens === undefined ? [] : [{ outputTokens: tokens }];
      return results.record({ attemptId, report: parseReport({ status: 'COMPLETED', usage }, attemptId) });
    });
    for (const ended of await Promise.all(ends))
      if (ended.answer !== 'APPLIED') throw new Error(JSON.stringify(ended));
  }
}
console.log('ready');
await Promise.all([claimer(), claimer()]);
await db.close();
