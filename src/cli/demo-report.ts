export interface TaskChange {
  at: string;
  runId: string;
  job: string;
  step: string;
  attemptNumber: number | null;
  fromStatus: string | null;
  toStatus: string;
  errorCode: string | null;
}
export interface RunSummary {
  id: string;
  status: string;
  correlationId: string;
  taskCounts: { completed: number; failed: number; cancelled: number } | null;
  usage: { totalTokens: number | null } | null;
  cost: { llm: string; compute: string; unpricedAttempts: number } | null;
}
export interface TraceSummary {
  events: { nodes: { id: string; topic: string; receivedAt: string }[] };
  tasks: {
    nodes: {
      id: string;
      step: string;
      status: string;
      agent: { name: string };
      startedAt: string | null;
      finishedAt: string | null;
    }[];
  };
  materializations: {
    nodes: {
      at: string;
      partition: string | null;
      asset: { key: string };
      inputs: { nodes: { asset: { key: string } }[] };
    }[];
  };
}

const time = (at: string): string => at.slice(11, 23);
const short = (id: string): string => `…${id.slice(-6)}`;

export function printChange(change: TaskChange): void {
  const attempt = change.attemptNumber === null ? '' : ` attempt ${change.attemptNumber}`;
  const error = change.errorCode === null ? '' : ` ${change.errorCode}`;
  console.log(
    `${time(change.at)}  ${short(change.runId)}  ${`${change.job}.${change.step}`.padEnd(44)} ${(change.fromStatus ?? 'new').padEnd(10)} -> ${change.toStatus}${attempt}${error}`,
  );
}

/** Everything that one correlation id left, in the order of time. */
export function printTrace(correlationId: string, trace: TraceSummary): void {
  const lines = [
    ...trace.events.nodes.map((event) => ({ at: event.receivedAt, text: `event            ${event.topic}` })),
    ...trace.tasks.nodes.map((task) => ({
      at: task.startedAt ?? task.finishedAt ?? '',
      text: `task             ${task.agent.name} / ${task.step}: ${task.status}`,
    })),
    ...trace.materializations.nodes.map((made) => ({
      at: made.at,
      text: `materialization  ${made.asset.key}${made.inputs.nodes.length > 0 ? ` from ${made.inputs.nodes.map((input) => input.asset.key).join(', ')}` : ''}`,
    })),
  ].sort((a, b) => a.at.localeCompare(b.at));
  console.log(`\nTrace of correlation id ${correlationId}`);
  for (const { at, text } of lines) console.log(`  ${time(at)}  ${text}`);
}

export function printTotals(runs: readonly RunSummary[], url: string): void {
  const sum = (of: (run: RunSummary) => number): number => runs.reduce((total, run) => total + of(run), 0);
  const tasks = sum(
    (run) =>
      (run.taskCounts?.completed ?? 0) + (run.taskCounts?.failed ?? 0) + (run.taskCounts?.cancelled ?? 0),
  );
  console.log('\nTotals');
  console.log(
    `  runs                ${runs.length} (${runs.filter((run) => run.status === 'COMPLETED').length} completed)`,
  );
  console.log(`  tasks               ${tasks}`);
  console.log(`  tokens              ${sum((run) => run.usage?.totalTokens ?? 0)}`);
  console.log(`  given costs         ${sum((run) => Number(run.cost?.llm ?? 0)).toFixed(6)} USD`);
  console.log(
    `  unpriced attempts   ${sum((run) => run.cost?.unpricedAttempts ?? 0)} (their workers told no cost, and none is invented)`,
  );
  console.log('\nWhere to go next');
  console.log(`  GraphQL             ${url}/graphql (see docs/api.md)`);
  console.log('  your first job      README.md, "Your first job"');
  console.log('  how it is built     ARCHITECTURE.md');
}
