import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { adminToken, run, startServerWithTokens } from '../support/clients.ts';
import { blocksOf } from '../support/recipes.ts';

const recipes = blocksOf(readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8'));
const commands = recipes.flatMap(({ heading, language, text }, i) => {
  const next = recipes[i + 1];
  return language === 'sh'
    ? [{ command: text, prints: next?.language === 'text' ? next.text : '', heading }]
    : [];
});

describe('the commands of docs/api.md, in one shell', () => {
  let server: Awaited<ReturnType<typeof startServerWithTokens>>;
  let outputs: string[];
  beforeAll(async () => {
    server = await startServerWithTokens();
    const separator = '=== the end of a block ===\n';
    const script = commands.map(({ command }) => `${command}echo '${separator.trim()}'\n`).join('');
    const output = await run('bash', ['-euo', 'pipefail', '-c', script], {
      env: { RUNPLANE_URL: new URL(server.url).origin, RUNPLANE_ADMIN_TOKEN: adminToken },
    });
    outputs = output.split(separator);
  }, 180_000);
  afterAll(() => server.stop());

  test('all of them end well', () => {
    expect(commands.length).toBeGreaterThan(20);
    expect(outputs).toHaveLength(commands.length + 1);
  });

  test.each(commands.map((one, i) => ({ ...one, i })))('$heading ($i)', ({ i, prints }) => {
    // What differs each time stands there as an ellipsis.
    const pattern = prints.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('…', '[^\\n]+');
    expect(outputs[i]).toMatch(new RegExp(`^${pattern}$`));
  });
});
