import { afterAll, beforeAll, expect, test } from 'vitest';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
beforeAll(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.agent('b');
});
afterAll(() => plane.stop());

const entries = () => plane.rows('select id, actor, target from runplane.audit_entries order by id');

test.each([
  "update runplane.audit_entries set actor = 'nobody'",
  `update runplane.audit_entries set at = at - interval '9 days'`,
  'delete from runplane.audit_entries',
  'truncate runplane.audit_entries',
  "select set_config('runplane.deletes_old_audit_entries', 'on', false); delete from runplane.audit_entries; reset all",
])('the database refuses to change its entries: %s', async (statement) => {
  const before = await entries();
  expect(before.length).toBeGreaterThanOrEqual(2);
  await expect(plane.rows(statement)).rejects.toMatchObject({ code: '42501' });
  expect(await entries()).toEqual(before);
});
