import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { lexicographicSortSchema, printSchema } from 'graphql';
import { buildSchema } from '../graphql/schema.ts';

const file = new URL('../../schema/schema.graphql', import.meta.url);
const printed = `${printSchema(lexicographicSortSchema(buildSchema()))}\n`;

if (process.argv.includes('--check')) {
  const stored = await readFile(file, 'utf8').catch(() => '');
  if (stored !== printed) {
    console.error('schema/schema.graphql is not the schema that is served: npm run schema:print');
    process.exitCode = 1;
  }
} else {
  await mkdir(new URL('.', file), { recursive: true });
  await writeFile(file, printed);
  console.log(`wrote ${fileURLToPath(file)}`);
}
