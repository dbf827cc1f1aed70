import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { joinEmbeddedPostgres } from '../../src/db/embedded-postgres.ts';
import { createTemplate } from './database.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    postgresUrl: string;
  }
}

/** One real Postgres for all test files; TEST_DATABASE_URL names another one instead, for other versions and poolers. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env.TEST_DATABASE_URL;
  if (given) {
    await createTemplate(given);
    project.provide('postgresUrl', given);
    return async () => {};
  }
  const directory = await mkdtemp(join(tmpdir(), 'runplane-test-'));
  // Only the end of the machine would tell the difference; each drop of a test's database waits for the disk otherwise.
  const settings = { fsync: 'off', full_page_writes: 'off' };
  const postgres = await joinEmbeddedPostgres({ dataDir: directory, settings });
  await createTemplate(postgres.url);
  project.provide('postgresUrl', postgres.url);
  return async () => {
    await postgres.leave();
    await rm(directory, { recursive: true, force: true });
  };
}
