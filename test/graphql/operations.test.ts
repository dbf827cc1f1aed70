import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Kind, parse, separateOperations, validate } from 'graphql';
import { describe, expect, test } from 'vitest';
import { schema } from './client.ts';

const root = new URL('../../', import.meta.url);
const filesOf = (folder: string, ending: string) =>
  readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(ending) && !/node_modules|\.venv/.test(file))
    .map((file) => `${folder}${file}`)
    .sort();
const read = (path: string) => readFileSync(new URL(path, root), 'utf8');
const faults = (text: string) => validate(schema, parse(text)).map(({ message }) => message);

describe('the operations of our own clients', () => {
  const files = filesOf('schema/operations/', '.graphql');

  test('are there, each with a name of its own', () => {
    const names = files.flatMap((file) =>
      parse(read(file)).definitions.map((definition) =>
        definition.kind === Kind.OPERATION_DEFINITION || definition.kind === Kind.FRAGMENT_DEFINITION
          ? definition.name?.value
          : definition.kind,
      ),
    );
    expect(names.length).toBeGreaterThan(0);
    expect(names).not.toContain(undefined);
    expect(new Set(names).size).toBe(names.length);
  });

  test.each(files)('%s is what the schema serves', (file) => {
    expect(faults(read(file))).toEqual([]);
  });
});

test('our own programs have no operations elsewhere', () => {
  // The text of an operations file, which a test of its own compares; what a server of a benchmark beside ours is sent.
  const others = ['src/client/document.ts', 'bench/launch.ts'];
  const written = /['"`]\s*(?:(?:query|mutation|subscription)\b[^'"`]*\{|\{\s*[a-z]\w*\s*[({])/g;
  const found = ['src/', 'bench/', 'bin/']
    .flatMap((folder) => [...filesOf(folder, '.ts'), ...filesOf(folder, '.js')])
    .flatMap((file) => [...read(file).matchAll(written)].map(() => file));
  expect(found.sort()).toEqual(others.sort());
});

test('what benchmarks send is there by its name', () => {
  const names = filesOf('bench/', '.ts').flatMap((file) =>
    [...read(file).matchAll(/operation\('(\w+)'\)/g)].map(([, name = '']) => name),
  );
  expect([...new Set(names)].sort()).toEqual(
    Object.keys(separateOperations(parse(read('schema/operations/bench.graphql')))).sort(),
  );
});

test('the operations of the example clients are what the schema serves', () => {
  const operations = filesOf('examples/operations/', '.graphql').map(read);
  expect(faults(operations.join('\n'))).toEqual([]);
});

/** Documents within other texts: blocks of GraphQL, and bodies of requests. */
function documentsOf(text: string): string[] {
  const blocks = [...text.matchAll(/^```graphql\n(.*?)^```/gms)].map(([, block = '']) => block);
  const bodies = [...text.matchAll(/"query": ("(?:[^"\\]|\\.)*")/g)].map(
    ([, literal = '""']) => JSON.parse(literal) as string,
  );
  return [...blocks, ...bodies];
}

const texts = ['README.md', ...filesOf('docs/', '.md'), ...filesOf('examples/', '.md')].flatMap((file) =>
  documentsOf(read(file)).map((document, i) => ({ where: `${file} (${i + 1})`, document })),
);

test.each(texts)('the operation in $where is what the schema serves', ({ document }) => {
  expect(faults(document)).toEqual([]);
});

describe('the package', () => {
  test('exports the schema that is served, and the operations', () => {
    const { resolve } = createRequire(import.meta.url);
    expect(readFileSync(resolve('runplane/schema.graphql'), 'utf8')).toBe(read('schema/schema.graphql'));
    expect(readFileSync(resolve('runplane/operations/demo.graphql'), 'utf8')).toContain('DemoPublish');
  });

  test('contains them, and no tests', () => {
    const output = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: root });
    const [packed] = JSON.parse(output.toString()) as { files: { path: string }[] }[];
    const paths = packed?.files.map(({ path }) => path) ?? [];
    expect(paths).toContain('schema/schema.graphql');
    expect(paths).toContain('schema/operations/demo.graphql');
    expect(paths).toContain('drizzle/0000_clock.sql');
    // What programs send that are not in the package.
    expect(paths).not.toContain('schema/operations/bench.graphql');
    expect(paths.filter((path) => path.startsWith('test/'))).toEqual([]);
  });
});
