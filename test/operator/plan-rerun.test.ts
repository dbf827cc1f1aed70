import { expect, test } from 'vitest';
import { type OldTask, planRerun } from '../../src/operator/plan-rerun.ts';

const task = (id: string, more: Partial<OldTask> = {}): OldTask => ({
  id,
  parentId: null,
  step: id,
  state: 'COMPLETED',
  dependsOn: [],
  deleted: false,
  ...more,
});
const again = (tasks: OldTask[], onlyFailed = true) =>
  planRerun(tasks, onlyFailed).map(({ oldId, takenOver }) => (takenOver ? `(${oldId})` : oldId));

test('what waits for what failed is executed again, through all steps; the rest is taken over', () => {
  const tasks = [
    task('a'),
    task('b', { dependsOn: ['a'], state: 'FAILED' }),
    task('c', { dependsOn: ['b'] }),
    task('d', { dependsOn: ['c'] }),
    task('e', { dependsOn: ['a'] }),
  ];
  expect(again(tasks)).toEqual(['(a)', 'b', 'c', 'd', '(e)']);
  expect(again(tasks, false)).toEqual(['a', 'b', 'c', 'd', 'e']);
});

test('what a task spawned comes again from the task when that is executed again, and else is a task of its own', () => {
  const tasks = [
    task('a'),
    task('a1', { parentId: 'a', state: 'FAILED' }),
    task('a2', { parentId: 'a' }),
    task('b', { state: 'FAILED' }),
    task('b1', { parentId: 'b' }),
    task('b11', { parentId: 'b1', state: 'FAILED' }),
  ];
  expect(again(tasks)).toEqual(['(a)', 'a1', '(a2)', 'b']);
  expect(again(tasks, false)).toEqual(['a', 'b']);
});

test('who waits for a step waits for what its tasks spawned', () => {
  const tasks = [
    task('a'),
    task('a1', { parentId: 'a' }),
    task('a11', { parentId: 'a1', state: 'CANCELLED' }),
    task('join', { dependsOn: ['a'] }),
  ];
  expect(again(tasks)).toEqual(['(a)', '(a1)', 'a11', 'join']);
});

test('what was deleted is executed again where a step says how, and else left out', () => {
  const tasks = [
    task('a', { deleted: true }),
    task('b'),
    task('b1', { parentId: 'b', deleted: true, state: 'FAILED' }),
  ];
  expect(again(tasks)).toEqual([]);
  expect(again([...tasks, task('c', { state: 'FAILED' })])).toEqual(['a', '(b)', 'c']);
});

test('a deep tree of spawned tasks is planned as well as a flat one', () => {
  const deep = Array.from({ length: 50_000 }, (_, i) =>
    task(`t${i}`, { parentId: i === 0 ? null : `t${i - 1}` }),
  );
  deep[10] = task('t10', { parentId: 't9', state: 'FAILED' });
  expect(again(deep)).toHaveLength(11);
  const wide = Array.from({ length: 50_000 }, (_, i) => task(`w${i}`, { dependsOn: i === 0 ? [] : ['w0'] }));
  wide[0] = task('w0', { state: 'FAILED' });
  expect(again(wide)).toHaveLength(50_000);
});
