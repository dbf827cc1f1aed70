import { readdirSync } from 'node:fs';

/**
 * The import arrows of src. A folder sees what its row names and nothing else, at any depth.
 * `sees` names folders of src; `modules` names files directly in src (default: all but app.ts and main.ts).
 */
const boundaries = {
  domain: {
    sees: [],
    modules: [],
    database: false,
    why: 'src/domain imports only src/domain: the rules of the product must be readable and testable without a database or a server.',
  },
  db: {
    sees: ['domain'],
    modules: [],
    why: 'src/db imports only src/domain: tables and transactions know nothing of the services that use them.',
  },
  changelog: {
    sees: ['domain', 'db'],
    why: 'src/changelog imports only src/domain and src/db: every service appends to it, so it can depend on none of them.',
  },
  result: {
    sees: ['domain', 'db', 'changelog'],
    why: 'src/result imports only src/domain, src/db and src/changelog: scheduler and dispatch settle work through it, so it can call neither back.',
  },
  intake: {
    sees: ['domain', 'db', 'changelog'],
    why: 'src/intake imports only src/domain, src/db and src/changelog: accepting work does not wait on, or know, who schedules or runs it.',
  },
  ingest: {
    sees: ['domain', 'db', 'intake'],
    why: 'src/ingest imports only src/domain, src/db and src/intake: what a broker delivers comes in by the door that all events come in by.',
  },
  scheduler: {
    sees: ['domain', 'db', 'changelog', 'result'],
    why: 'src/scheduler imports only src/domain, src/db, src/changelog and src/result: it meets the other services in the tables, never by calling them.',
  },
  dispatch: {
    sees: ['domain', 'db', 'changelog', 'scheduler', 'result'],
    why: 'src/dispatch imports only src/domain, src/db, src/changelog, src/scheduler and src/result: it claims by the scheduler, reports by the result, and knows no other service.',
  },
  housekeeping: {
    sees: ['domain', 'db', 'changelog', 'result'],
    why: 'src/housekeeping imports only src/domain, src/db, src/changelog and src/result: it repairs by the door that results go through, and nothing depends on it.',
  },
  operator: {
    sees: ['domain', 'db', 'changelog', 'intake', 'result', 'read'],
    why: 'src/operator imports only src/domain, src/db, src/changelog, src/intake, src/result and src/read: an operator chooses by the questions, and changes work by the doors, that everyone else uses.',
  },
  read: {
    sees: ['domain', 'db', 'changelog'],
    why: 'src/read imports only src/domain, src/db and src/changelog: a query must not be able to reach code that writes.',
  },
  graphql: {
    sees: ['domain', 'changelog', 'intake', 'scheduler', 'dispatch', 'result', 'operator', 'read'],
    database: false,
    why: 'src/graphql imports only the services and src/domain: graphql never sees tables or SQL.',
  },
  credentials: {
    sees: ['domain', 'db'],
    why: 'src/credentials imports only src/domain and src/db: who asks is known before anything is done, so it depends on nothing that is.',
  },
  http: {
    sees: ['domain', 'graphql', 'changelog', 'read'],
    database: false,
    why: 'src/http imports only src/domain, src/graphql, src/changelog and src/read: transport carries operations and holds no rules of its own.',
  },
  telemetry: {
    sees: ['domain', 'db'],
    why: 'src/telemetry imports only src/domain and src/db: it hears of work and takes no part in it, and no service imports it.',
  },
  knowledge: {
    sees: ['domain', 'db', 'intake', 'operator', 'dispatch'],
    why: 'src/knowledge imports only src/domain, src/db (its own tables), src/intake, src/operator and the handler contract of src/dispatch: it is a user of the control plane, not a part of it.',
  },
  client: {
    sees: [],
    modules: [],
    database: false,
    why: 'src/client imports nothing of the server: it is published for other programs, which speak to the server over the network.',
  },
};

const onlyAppSeesKnowledge =
  'Only src/app.ts imports src/knowledge: the product must run with it taken away.';
const noWayUp =
  'Only src/main.ts, src/app.ts and src/cli start the product: what they assemble must not import them.';
const noDatabase = 'No pg or drizzle here: tables and SQL belong to src/db and the services.';
const rootSeesDomain =
  'A file directly in src (but app.ts and main.ts) imports only its neighbours and src/domain: every folder may import it, so it would open a way around the import arrows.';
const onlyConfigReadsEnv =
  'Only src/config.ts reads the environment: every setting is named, checked and documented in one place.';

const noEnvImport = ['node:process', 'process'].map((name) => ({
  name,
  importNames: ['env', 'default'],
  message: onlyConfigReadsEnv,
}));

const databasePackages = { regex: '^(pg|postgres|drizzle)([-/].*)?$', message: noDatabase };

function restrictImports(patterns, paths = noEnvImport) {
  return { 'no-restricted-imports': ['error', { paths, patterns }] };
}

/** One override per depth, because a pattern sees the text of an import and not the file it leads to. */
function boundaryOverrides(folder, { sees, modules, database = true, why }) {
  return [1, 2, 3].map((depth) => {
    const src = '../'.repeat(depth);
    const known = sees.map((name) => `!${src}${name}/**`);
    const group =
      modules === undefined
        ? [`${src}*/**`, ...known, `${src}app.ts`, `${src}main.ts`]
        : [`${src}**`, ...known, ...modules.map((name) => `!${src}${name}`)];
    const patterns = [{ group, message: why }];
    if (!database) patterns.push(databasePackages);
    return { files: [`src/${folder}/${'*/'.repeat(depth - 1)}*.ts`], rules: restrictImports(patterns) };
  });
}

/** A folder of src without a row sees src/domain, and no row sees it, until someone decides its place. */
const unplaced = readdirSync(new URL('src', import.meta.url), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== 'cli' && !(entry.name in boundaries))
  .map(({ name }) => [
    name,
    {
      sees: ['domain'],
      why: `src/${name} has no row in oxlint.config.mjs: decide what it may import there.`,
    },
  ]);

export default {
  plugins: ['typescript', 'unicorn', 'oxc', 'import', 'promise', 'node'],
  options: { typeAware: true, denyWarnings: true, reportUnusedDisableDirectives: 'error' },
  // Examples have packages and types of their own; test/system compiles them.
  ignorePatterns: ['node_modules', 'drizzle', 'dist', 'examples', '.runplane', '.tmp', 'coverage'],
  categories: { correctness: 'error' },
  rules: {
    // Promises: nothing is lost, nothing is awaited that cannot be. A drizzle query is a thenable.
    'typescript/no-floating-promises': ['error', { checkThenables: true }],
    'typescript/no-misused-promises': 'error',
    'typescript/await-thenable': 'error',
    'typescript/return-await': ['error', 'error-handling-correctness-only'],
    'typescript/prefer-promise-reject-errors': 'error',
    'typescript/use-unknown-in-catch-callback-variable': 'error',
    'promise/no-multiple-resolved': 'error',

    // Types: no way out of the checker.
    'typescript/no-explicit-any': 'error',
    'typescript/no-unsafe-argument': 'error',
    'typescript/no-unsafe-assignment': 'error',
    'typescript/no-unsafe-call': 'error',
    'typescript/no-unsafe-function-type': 'error',
    'typescript/no-unsafe-member-access': 'error',
    'typescript/no-unsafe-return': 'error',
    'typescript/no-unsafe-enum-comparison': 'error',
    'typescript/no-unnecessary-type-assertion': 'error',
    'typescript/no-unnecessary-type-constraint': 'error',
    'typescript/no-non-null-asserted-nullish-coalescing': 'error',
    'typescript/ban-ts-comment': 'error',
    'typescript/no-deprecated': 'error',
    'typescript/no-mixed-enums': 'error',
    'typescript/restrict-plus-operands': 'error',
    'typescript/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
    'typescript/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
    'typescript/consistent-type-imports': ['error', { disallowTypeAnnotations: true }],
    'typescript/no-import-type-side-effects': 'error',

    // Errors keep their kind and their cause.
    'typescript/only-throw-error': 'error',
    'preserve-caught-error': 'error',
    'unicorn/throw-new-error': 'error',
    'unicorn/error-message': 'error',

    // Plain mistakes.
    eqeqeq: ['error', 'always', { null: 'ignore' }],
    'no-control-regex': 'off', // The product refuses control characters, so it looks for them.
    'prefer-const': 'error',
    'no-var': 'error',
    'no-empty': 'error',
    'no-self-compare': 'error',
    'no-return-assign': 'error',
    'no-sequences': 'error',
    'no-new-wrappers': 'error',
    'no-prototype-builtins': 'error',
    'no-unused-vars': [
      'error',
      {
        argsIgnorePattern: '^_',
        varsIgnorePattern: '^_',
        caughtErrorsIgnorePattern: '^_',
        ignoreRestSiblings: true,
      },
    ],
    'unicorn/no-abusive-eslint-disable': 'error',

    // Modules.
    'import/no-cycle': ['error', { ignoreTypes: true }],
    'import/no-self-import': 'error',
    'import/no-duplicates': 'error',
    'import/no-mutable-exports': 'error',
    'unicorn/prefer-node-protocol': 'error',
  },
  overrides: [
    {
      files: ['src/**/*.ts'],
      rules: {
        'no-console': 'error',
        'unicorn/no-process-exit': 'error',
        'no-restricted-properties': [
          'error',
          { object: 'process', property: 'env', message: onlyConfigReadsEnv },
          { object: 'globalThis', property: 'process', message: onlyConfigReadsEnv },
        ],
      },
    },
    {
      // Hands the environment on to the programs of Postgres, reads nothing of it.
      files: ['src/db/embedded-postgres/**/*.ts'],
      rules: { 'no-restricted-properties': 'off' },
    },
    {
      files: ['src/main.ts', 'src/cli/**/*.ts'],
      rules: {
        'no-console': 'off',
        'unicorn/no-process-exit': 'off',
        ...restrictImports([{ regex: '^(\\./|(\\.\\./)+)knowledge(/|$)', message: onlyAppSeesKnowledge }]),
      },
    },
    {
      files: ['src/*.ts'],
      excludeFiles: [
        'src/app.ts',
        'src/main.ts',
        'src/config.ts',
        'src/services.ts',
        'src/start-error.ts',
        'src/stop-on-signal.ts',
      ],
      rules: restrictImports([
        { group: ['./*/**', '!./domain/**'], message: rootSeesDomain },
        { group: ['./app.ts', './main.ts'], message: noWayUp },
      ]),
    },
    {
      files: ['src/config.ts'],
      rules: {
        'no-restricted-properties': 'off',
        ...restrictImports(
          [
            { group: ['./*/**', '!./domain/**'], message: rootSeesDomain },
            { group: ['./app.ts', './main.ts'], message: noWayUp },
          ],
          [],
        ),
      },
    },
    { files: ['src/app.ts'], rules: restrictImports([{ group: ['./main.ts'], message: noWayUp }]) },
    ...[...Object.entries(boundaries), ...unplaced].flatMap(([folder, row]) =>
      boundaryOverrides(folder, row),
    ),
    {
      // In tests an answer of the API is JSON, which the assertions check; a .mjs file has no types at all.
      files: ['test/**/*.ts', 'bench/**/*.ts', '**/*.mjs'],
      rules: {
        'typescript/no-unsafe-argument': 'off',
        'typescript/no-unsafe-assignment': 'off',
        'typescript/no-unsafe-call': 'off',
        'typescript/no-unsafe-member-access': 'off',
        'typescript/no-unsafe-return': 'off',
      },
    },
    {
      files: ['test/**/*.test.ts'],
      plugins: ['typescript', 'unicorn', 'oxc', 'import', 'promise', 'node', 'vitest'],
      rules: {
        'vitest/no-focused-tests': 'error',
        'vitest/no-disabled-tests': 'error',
        'vitest/no-identical-title': 'error',
        'vitest/expect-expect': 'off',
        'vitest/no-conditional-expect': 'off',
        'vitest/require-mock-type-parameters': 'off',
        'vitest/no-restricted-vi-methods': [
          'error',
          {
            mock: 'Run the real thing: a mocked module proves nothing about the product.',
            doMock: 'Run the real thing: a mocked module proves nothing about the product.',
          },
        ],
      },
    },
  ],
};
