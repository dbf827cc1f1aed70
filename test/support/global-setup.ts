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
  const postgres = await joinEmbeddedPostgres({ dataDir: directory });
  await createTemplate(postgres.url);
  project.provide('postgresUrl', postgres.url);
  return async () => {
    await postgres.leave();
    await rm(directory, { recursive: true, force: true });
  };
}
