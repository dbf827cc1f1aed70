import { readFile } from 'node:fs/promises';
import { isInterfaceType } from 'graphql';
import { describe, expect, it } from 'vitest';
import { dependencyFailed, inputTemplateFailed, leaseLost, timedOut } from '../src/domain/execution-error.ts';
import { type ErrorPlace, errors } from '../src/errors.ts';
import { schema } from './graphql/client.ts';

const sections: Record<string, ErrorPlace> = {
  'Execution errors': 'execution',
  Problems: 'problem',
  'GraphQL errors': 'graphql',
  'Start-up errors': 'start',
};

/** The rows of docs/errors.md as catalogue entries. */
async function readDocs(): Promise<unknown[]> {
  const text = await readFile(new URL('../docs/errors.md', import.meta.url), 'utf8');
  return text
    .split('\n## ')
    .slice(1)
    .flatMap((section) => {
      const where = sections[section.slice(0, section.indexOf('\n'))];
      return [...section.matchAll(/^\| `(.+?)` +\| (yes|no) +\| (.+?) +\|$/gm)].map(
        ([, code, retryable, message]) => ({
          code,
          message,
          retryable: retryable === 'yes',
          where,
        }),
      );
    });
}

describe('the error catalogue', () => {
  it('is what docs/errors.md says, in both directions', async () => {
    expect(await readDocs()).toEqual(Object.values(errors));
  });

  it('has each entry under its code', () => {
    for (const [code, entry] of Object.entries(errors)) expect(entry.code).toBe(code);
  });

  it('knows every problem that a command of the schema may answer, and no other', () => {
    const problem = schema.getType('Problem');
    if (!isInterfaceType(problem)) throw new Error('the schema has no problems');
    const known = Object.values(errors).filter(({ where }) => where === 'problem');
    expect(known.map(({ code }) => code).sort()).toEqual(
      schema
        .getPossibleTypes(problem)
        .map(({ name }) => name)
        .sort(),
    );
  });

  it('knows every execution error of the domain', () => {
    for (const { code } of [leaseLost(5), timedOut, dependencyFailed(['a']), inputTemplateFailed('x')]) {
      expect(errors).toHaveProperty(code, expect.objectContaining({ where: 'execution' }));
    }
  });
});
