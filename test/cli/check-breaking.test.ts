import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

const script = new URL('../../src/cli/check-breaking.ts', import.meta.url).pathname;
const schema = readFileSync(new URL('../../schema/schema.graphql', import.meta.url), 'utf8');

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'released-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** What the check says of a schema that follows the one that is served. */
function check(next: string): { status: number | null; said: string } {
  const files = ['older.graphql', 'newer.graphql'].map((name) => join(folder, name)) as [string, string];
  writeFileSync(files[0], schema);
  writeFileSync(files[1], next);
  const { status, stdout, stderr } = spawnSync('npx', ['tsx', script, ...files], { encoding: 'utf8' });
  return { status, said: stdout + stderr };
}

test('a schema with more in it passes, one that lacks something fails and says what', () => {
  expect(check(schema)).toEqual({ status: 0, said: '' });
  expect(check(schema.replace('type Query {', 'type Query {\n  more: String'))).toEqual({
    status: 0,
    said: '',
  });
  const { status, said } = check(schema.replace('changeLogCursor: Cursor!', 'position: Cursor!'));
  expect(status).toBe(1);
  expect(said).toContain('changeLogCursor');
});
