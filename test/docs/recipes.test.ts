import { readdirSync, readFileSync } from 'node:fs';
import { parse, validate } from 'graphql';
import { expect, test } from 'vitest';
import { schema } from '../graphql/client.ts';
import { blocksOf } from '../support/recipes.ts';

const root = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), 'utf8');
const recipes = blocksOf(read('docs/api.md'));

/** The lines without what all of them are indented by. */
function dedent(lines: string[]): string {
  const depths = lines.filter((line) => line !== '').map((line) => line.search(/\S/));
  const depth = Math.min(...depths);
  return lines.map((line) => line.slice(depth)).join('\n');
}

/** Whether the block is a part of a file, at whatever depth it is indented there. */
const isPartOf = (source: string, block: string): boolean => {
  const size = block.split('\n').length;
  const lines = source.split('\n');
  return lines.some((_, at) => dedent(lines.slice(at, at + size)) === block);
};

const sources = {
  ts: { folder: 'examples/typescript-client/src/', ending: '.ts' },
  python: { folder: 'examples/python-client/', ending: '.py' },
};

test.each(Object.entries(sources))(
  'the %s of docs/api.md is that of the example client',
  (language, source) => {
    const files = readdirSync(new URL(source.folder, root))
      .filter((file) => file.endsWith(source.ending))
      .map((file) => read(`${source.folder}${file}`));
    const blocks = recipes.filter((block) => block.language === language).map(({ text }) => text.trimEnd());
    expect(blocks.length).toBeGreaterThan(10);
    expect(blocks.filter((block) => !files.some((file) => isPartOf(file, block)))).toEqual([]);
  },
);

test('the operations in the commands of docs/api.md are what the schema serves', () => {
  const commands = recipes.filter(({ language }) => language === 'sh').map(({ text }) => text);
  const operations = commands.flatMap((text) =>
    [...text.matchAll(/(?:gql |stream |report=|page=|spent=)'([^']+)'/g)].map(
      ([, operation = '']) => operation,
    ),
  );
  expect(operations.length).toBeGreaterThan(20);
  const faults = operations.flatMap((operation) => validate(schema, parse(operation)));
  expect(faults.map(({ message }) => message)).toEqual([]);
});
