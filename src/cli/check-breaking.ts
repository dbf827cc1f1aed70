import { existsSync, readFileSync } from 'node:fs';
import { CriticalityLevel, diff } from '@graphql-inspector/core';
import { buildSchema } from 'graphql';

/**
 * Fails where the schema breaks clients of the last release, whose schema is kept as schema/released.graphql: the copy of
 * schema/schema.graphql that `npm version` makes.
 */
const folder = new URL('../../schema/', import.meta.url);
const released = new URL('released.graphql', folder);
const read = (file: URL) => buildSchema(readFileSync(file, 'utf8'));

if (existsSync(released)) {
  const changes = await diff(read(released), read(new URL('schema.graphql', folder)));
  const breaking = changes.filter(({ criticality }) => criticality.level === CriticalityLevel.Breaking);
  for (const { message, path } of breaking)
    console.error(`breaks clients of the last release: ${message} (${path})`);
  if (breaking.length > 0) process.exitCode = 1;
} else {
  console.log('nothing is released yet: there is no schema/released.graphql to compare with');
}
