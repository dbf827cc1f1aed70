import { afterEach, beforeEach, expect, test } from 'vitest';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
});
afterEach(() => plane.stop());

const text = (kilobytes: number): string => 'x'.repeat(kilobytes * 1024);
const transactionsOf = async (table: string): Promise<number> =>
  (await plane.rows(`select distinct xmin::text from runplane.${table}`)).length;

test('launches, results and what workers tell share a transaction while it is not too much together', async () => {
  const launches = (config: object) => Array.from({ length: 20 }, () => ({ job: 'one', config }));
  await plane.services.intake.launchRuns(launches({}));
  expect(await transactionsOf('runs')).toBe(1);
  await plane.services.intake.launchRuns(launches({ text: text(1000) }));
  expect(await transactionsOf('runs')).toBe(1 + 3);

  const claimed = await plane.claim(['a'], 40);
  const [one, ...others] = claimed;
  if (!one) throw new Error('nothing was claimed');
  const usage = (responseId: string, kilobytes: number) => ({
    model: 'm',
    responseId,
    raw: { text: text(kilobytes) },
  });
  await plane.services.dispatch.extendLeases(
    claimed.map((each, i) => ({
      ...plane.credentials(each),
      usage: Array.from({ length: 10 }, (_, n) => usage(`${i}-${n}`, 60)),
    })),
  );
  expect(await transactionsOf('usage')).toBe(4);

  await Promise.all(
    others.map((each) =>
      plane.tell(
        each,
        Array.from({ length: 10 }, () => ({ type: 'page', data: { text: text(60) } })),
      ),
    ),
  );
  expect(await transactionsOf('attempt_events')).toBe(3);

  await Promise.all(
    others.map((each) => plane.report(each, { status: 'COMPLETED', output: { text: text(2000) } })),
  );
  await plane.report(one, { status: 'COMPLETED', output: { text: text(8000) } });
  expect(await transactionsOf('attempts')).toBe(10 + 1);
});
