import { toPublicId } from '../domain/ids.ts';
import type { LaunchRunSuccess } from '../intake/types.ts';
import { builder } from './builder.ts';
import { LabelInput } from './label-input.ts';
import {
  ForbiddenRef,
  IdempotencyConflictRef,
  InvalidInputRef,
  JobNotFoundRef,
  RunConfigValidationInvalidRef,
  UnavailableRef,
} from './problems.ts';
import { withPublicConflict } from './public-ids.ts';
import { RunRef } from './refs.ts';
import { eachAllowed, refusedName } from './restrictions.ts';
import { refused } from './scopes.ts';
import { traced } from './traced.ts';

const LaunchStepInput = builder.inputType('LaunchStepInput', {
  description: "What a launch says about one step, in place of the launch's own values.",
  fields: (t) => ({
    step: t.string({ required: true, description: 'Name of the step.' }),
    estimatedTokens: t.field({
      type: 'SafeInt',
      description: 'Tokens that its task is expected to use, from 0.',
    }),
    priority: t.int({ description: '-1000 to 1000, higher first.' }),
    maxAttempts: t.int({ description: 'Attempts that count before it fails, 1 to 1000.' }),
    serialKey: t.string({ description: 'At most one task runs per agent and serial key.' }),
  }),
});

const DebounceInput = builder.inputType('DebounceInput', {
  description:
    'A waiting run of the job with this key is kept (same id), takes the new config, and starts seconds after the newest launch, at most maxSeconds after the first. It waits until its first task is due; after that, or when it was cancelled, a launch makes a new run. Everything else of the newest launch replaces what the run had, too: labels, customer, priority, correlationId, serialKey, steps …. It keeps the version of the job, whose schema each config has to satisfy. A refused launch changes nothing.',
  fields: (t) => ({
    key: t.string({ required: true, description: '1 to 200 bytes; unique in the job.' }),
    seconds: t.float({
      required: true,
      description: 'Quiet time before the start; greater than 0, up to 86,400.',
    }),
    maxSeconds: t.float({
      description:
        'The longest time from the first launch to the start, as the newest launch says; from seconds to 604,800 (7 days). Absent: each launch postpones it, without end.',
    }),
    collect: t.boolean({
      description:
        'The run gets all configs instead of the newest, as { items: [...] } in order; each has to satisfy the schema, and together they may be as large as one config (1 MiB), else InvalidInput. Default false. With another value than the waiting run has: InvalidInput.',
    }),
  }),
});

const LaunchRunInput = builder.inputType('LaunchRunInput', {
  description: 'A run to launch.',
  fields: (t) => ({
    job: t.string({ required: true, description: 'Name of the job.' }),
    config: t.field({
      type: 'JSON',
      description: "An object that satisfies the job's schema; absent is {}.",
    }),
    idempotencyKey: t.string({
      description:
        'With the same key and the same input the first run is given again, replayed true; with another input IdempotencyConflict. Kept for at least 7 days.',
    }),
    correlationId: t.string({ description: "1 to 200 bytes; absent is the run's id." }),
    priority: t.int({ description: '-1000 to 1000, higher first; default 0.' }),
    customer: t.string({
      description:
        'Whom the work is for: within a priority the customers of an agent take turns. No isolation.',
    }),
    labels: t.field({ type: [LabelInput], description: 'At most 32.' }),
    estimatedTokens: t.field({
      type: 'SafeInt',
      description: 'Tokens that each task is expected to use, from 0.',
    }),
    availableAt: t.field({
      type: 'DateTime',
      description: 'Nothing of it starts before; in the years 1970 to 9999, absent is now.',
    }),
    serialKey: t.string({ description: 'At most one task runs per agent and serial key, in enqueue order.' }),
    debounce: t.field({
      type: DebounceInput,
      description:
        'Brings launches that follow each other quickly together in one run. Not together with availableAt.',
    }),
    steps: t.field({ type: [LaunchStepInput], description: 'Other values for single steps.' }),
  }),
});

export const LaunchRunSuccessRef = builder.objectRef<LaunchRunSuccess>('LaunchRunSuccess').implement({
  description: 'The run is stored and will run.',
  fields: (t) => ({
    runId: t.id({ description: 'The run, run_….', resolve: ({ runId }) => toPublicId('run', runId) }),
    replayed: t.exposeBoolean('replayed', {
      description: 'Whether an earlier launch with the same key made it.',
    }),
    cursor: t.expose('cursor', {
      type: 'Cursor',
      description:
        "Position in the change log before the run's first change: subscribe after it to miss nothing.",
    }),
    run: t.field({
      type: RunRef,
      nullable: true,
      description: 'The run. Needs READ, else null.',
      resolve: ({ runId }, _, context) => context.loaders.run(runId),
    }),
  }),
});

const LaunchRunResult = builder.unionType('LaunchRunResult', {
  description: 'What became of a launch.',
  types: [
    LaunchRunSuccessRef,
    RunConfigValidationInvalidRef,
    JobNotFoundRef,
    IdempotencyConflictRef,
    InvalidInputRef,
    UnavailableRef,
    ForbiddenRef,
  ],
  resolveType: ({ kind }) => kind,
});

builder.mutationFields((t) => ({
  launchRun: t.field({
    type: LaunchRunResult,
    nullable: true,
    description: 'Launches a run of a job. Needs LAUNCH.',
    args: { input: t.arg({ type: LaunchRunInput, required: true, description: 'The run.' }) },
    resolve: async (_, { input }, context) => {
      const forbidden = refused(context, 'LAUNCH') ?? refusedName(context, 'jobs', input.job);
      if (forbidden) return forbidden;
      const [outcome] = await context.services.intake.launchRuns([traced(input, context)]);
      return outcome && withPublicConflict('run', outcome);
    },
  }),
  launchRuns: t.field({
    type: [LaunchRunResult],
    nullable: true,
    description:
      'Launches runs, each on its own: a bad entry does not stop the others. Results in input order. Needs LAUNCH.',
    args: { inputs: t.arg({ type: [LaunchRunInput], required: true, description: 'At most 1,000.' }) },
    resolve: async (_, { inputs }, context) => {
      const forbidden = refused(context, 'LAUNCH');
      if (forbidden) return inputs.map(() => forbidden);
      const outcomes = await eachAllowed(
        inputs,
        ({ job }) => refusedName(context, 'jobs', job),
        (allowed) => context.services.intake.launchRuns(allowed.map((input) => traced(input, context))),
      );
      return outcomes.map((outcome) => withPublicConflict('run', outcome));
    },
  }),
}));
