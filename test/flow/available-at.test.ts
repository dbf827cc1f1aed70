import { afterEach, beforeEach, expect, test } from 'vitest';
import { createMover } from '../../src/scheduler/mover.ts';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
});
afterEach(() => plane.stop());

test.each([
  ['1970-01-01T00:00:00.000Z', 0],
  ['9999-12-31T23:59:59.999Z', 1],
])(
  'at the ends of what availableAt may be (%s) are kept as they are and stop no other',
  async (at, delayed) => {
    await plane.launch('one', { availableAt: new Date(at) });
    await plane.launch('one');
    expect(
      await plane.rows('select available_at as at from runplane.runs order by created_at, id'),
    ).toMatchObject([{ at: new Date(at) }, {}]);
    expect(await plane.rows('select task_id from runplane.delayed_tasks')).toHaveLength(delayed);
    expect(await plane.claim(['a'])).toHaveLength(2 - delayed);
    const errors: unknown[] = [];
    const mover = createMover({
      db: plane.database.db,
      onMoved: () => {},
      onError: (error) => errors.push(error),
    });
    mover.start();
    await mover.stop();
    expect(errors).toEqual([]);
  },
);
