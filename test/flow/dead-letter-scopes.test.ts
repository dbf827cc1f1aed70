import { afterAll, beforeAll, expect, test } from 'vitest';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
beforeAll(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
});
afterAll(() => plane.stop());

const label = (key: string, value: string) => ({ key, value });
const cases: [string, { labels?: ReturnType<typeof label>[]; config?: object }, [string, string | null]][] = [
  ...['knowledge_base_id', 'kb_id', 'source_kb_id'].flatMap((key): typeof cases => [
    [`the label ${key}`, { labels: [label(key, '7')] }, ['knowledge_base', '7']],
    [`the key ${key} of the input`, { config: { [key]: '8' } }, ['knowledge_base', '8']],
  ]),
  ['the label knowledge_id', { labels: [label('knowledge_id', 'k')] }, ['knowledge', 'k']],
  ['the key knowledge_id of the input', { config: { knowledge_id: 'k' } }, ['knowledge', 'k']],
  ['the label tenant_id', { labels: [label('tenant_id', 't')] }, ['tenant', 't']],
  ['the key tenant_id of the input', { config: { tenant_id: 't' } }, ['tenant', 't']],
  ['a key whose value is a number', { config: { kb_id: 42 } }, ['knowledge_base', '42']],
  ['nothing', {}, ['unknown', null]],
  ['a key below the top of the input', { config: { source: { kb_id: '7' } } }, ['unknown', null]],
  ['a key whose value is no id', { config: { kb_id: '', tenant_id: ['t'] } }, ['unknown', null]],
  [
    'a label although the input has a narrower key',
    { labels: [label('tenant_id', 't')], config: { kb_id: '7' } },
    ['tenant', 't'],
  ],
  [
    'the knowledge base before the knowledge and the tenant',
    { labels: [label('tenant_id', 't'), label('knowledge_id', 'k'), label('source_kb_id', '7')] },
    ['knowledge_base', '7'],
  ],
];

test.each(cases)('the scope of a dead letter comes from %s', async (_, launch, [scope, scopeId]) => {
  const run = await plane.launch('one', launch);
  for (const task of await plane.claim(['a']))
    await plane.report(task, { status: 'FAILED', error: { code: 'NO', kind: 'PERMANENT' } });
  expect(
    await plane.rows('select scope, scope_id from runplane.dead_letters where run_id = $1', [run]),
  ).toEqual([{ scope, scope_id: scopeId }]);
});
