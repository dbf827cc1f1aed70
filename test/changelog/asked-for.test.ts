import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Changes, MessageStream, RunChangeFilter, TaskChangeFilter } from '../../src/changelog/types.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { count } from '../support/tier.ts';

/** The log is read only for what somebody asks for: by runs, tasks or correlation ids, or all of it; of tasks, of runs or of both. */
const scope = fc.constantFrom('run', 'task', 'correlation', 'all');
const watcher = fc.record({ of: fc.constantFrom('tasks', 'runs'), by: scope, which: fc.nat(3) });
const runsOfAStory = 4;

let plane: ControlPlane;
beforeAll(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
});
afterAll(() => plane.stop());

test('whoever else watches, each stream tells exactly what the log has of what it asks for', async () => {
  const story = fc.asyncProperty(fc.array(watcher, { minLength: 1, maxLength: 5 }), async (watchers) => {
    const { changeLog } = plane.services;
    const correlations = Array.from({ length: runsOfAStory }, () => crypto.randomUUID());
    const start = await changeLog.currentCursor();
    const runs = await Promise.all(
      correlations.map((correlationId) => plane.launch('one', { correlationId })),
    );
    const runId = (which: number): string => runs[which] ?? '';
    const tasks = await plane.rows<{ id: string }>(
      'select t.id from runplane.tasks t join unnest($1::uuid[]) with ordinality r(id, n) on r.id = t.run_id order by r.n',
      [runs],
    );
    const open = watchers.map(({ of, by, which }) => {
      const filters: Record<typeof by, TaskChangeFilter & RunChangeFilter> = {
        run: of === 'tasks' ? { runIds: [runId(which)] } : { ids: [runId(which)] },
        task: of === 'tasks' ? { ids: [tasks[which]?.id ?? ''] } : {},
        correlation: { correlationId: correlations[which] },
        all: {},
      };
      return { of, filter: filters[by], stream: streamOf(of, filters[by]), seen: new Set<number>() };
    });
    for (const { stream } of open) await stream.next();
    for (const task of await plane.claim(['a'])) await plane.report(task, { status: 'COMPLETED' });
    for (const { of, filter, stream, seen } of open) {
      const page = { after: start, first: 200, waitMs: 0 };
      const { changes } =
        of === 'tasks'
          ? await changeLog.taskChangePage(filter, page)
          : await changeLog.runChangePage(filter, page);
      // The page may begin earlier, while transactions are open; those of the launch were before the stream.
      const expected = changes
        .filter((change) => runs.includes(change.runId) && change.sequence > 1)
        .map(({ number }) => number);
      while (seen.size < expected.length) {
        const { done, value } = await stream.next();
        // Nothing comes any more.
        if (done || value.changes.length === 0) break;
        for (const { number } of value.changes) seen.add(number);
      }
      expect([...seen].toSorted((a, b) => a - b)).toEqual(expected.toSorted((a, b) => a - b));
      await stream.return?.();
    }
  });
  await fc.assert(story, { numRuns: count({ test: 15, soak: 500 }) });
}, 600_000);

type Numbered = MessageStream<Changes<{ number: number }>>;
const streamOf = (of: string, filter: TaskChangeFilter & RunChangeFilter): Numbered =>
  of === 'tasks'
    ? plane.services.changeLog.taskChanges(filter, null)
    : plane.services.changeLog.runChanges(filter, null);
