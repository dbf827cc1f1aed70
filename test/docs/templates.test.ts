import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../support/command.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { blocksOf } from '../support/recipes.ts';

const blocks = blocksOf(readFileSync(new URL('../../docs/templates.md', import.meta.url), 'utf8'));
const textsIn = (language: string): string[] =>
  blocks.filter((block) => block.language === language).map(({ text }) => text);

let plane: ControlPlane;
beforeAll(async () => {
  plane = await ControlPlane.start();
});
afterAll(() => plane.stop());

const claimOf = async (agent: string) => {
  const tasks = await plane.claim([agent]);
  if (tasks.length === 0) throw new Error(`There is nothing for ${agent}.`);
  return tasks;
};

test('the join of docs/templates.md gives the input that stands there', async () => {
  const [manifest = ''] = textsIn('yaml');
  const [event, input] = textsIn('json').map(
    (text) => JSON.parse(text) as { topic: string; payload: object },
  );
  if (!event) throw new Error('docs/templates.md has no event.');
  const applied = await runCommand(['apply', '-f', '-'], {
    env: { DATABASE_URL: plane.database.url },
    input: manifest,
  });
  expect(applied).toMatchObject({ code: 0, stderr: '' });

  expect(await plane.services.intake.publishEvents([event])).toMatchObject([{ refusals: [] }]);
  const [split] = await claimOf('splitter');
  expect(split).toMatchObject({ input: { title: 'Atlas', pages: 2 }, customer: 'acme' });
  const page = { step: 'page', agent: 'reader' };
  const output = { cover: 'map.png' };
  await plane.report(split!, { status: 'COMPLETED', output, spawn: [page, page] });
  const [north, south] = await claimOf('reader');
  await plane.report(south!, { status: 'COMPLETED', output: { text: 'South' } });
  await plane.report(north!, { status: 'COMPLETED', output: { text: 'North' } });
  const [bind] = await claimOf('binder');
  expect(bind?.input).toEqual(input);
});
