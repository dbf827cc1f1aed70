import { existsSync, readFileSync } from 'node:fs';
import { CriticalityLevel, diff } from '@graphql-inspector/core';
import { buildSchema } from 'graphql';

/**
 * Fails where the schema breaks clients of the last release, whose schema was kept as schema/released.graphql: a copy of
 * schema/schema.graphql that a release makes. Takes two other files instead, the older first.
 */
const folder = new URL('../../schema/', import.meta.url);
const [older = new URL('released.graphql', folder), newer = new URL('schema.graphql', folder)] =
  process.argv.slice(2);

if (!existsSync(older)) {
  console.log('nothing is released yet: there is no schema/released.graphql to compare with');
} else {
  const [before, after] = [older, newer].map((file) => buildSchema(readFileSync(file, 'utf8')));
  if (!before || !after) throw new Error('Two schemas are compared.');
  const breaking = (await diff(before, after)).filter(
    ({ criticality }) => criticality.level === CriticalityLevel.Breaking,
  );
  for (const { message, path } of breaking)
    console.error(`breaks clients of the last release: ${message} (${path})`);
  if (breaking.length > 0) process.exitCode = 1;
}
