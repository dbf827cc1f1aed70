import { fromPublicId } from '../domain/ids.ts';
import { notFound } from '../domain/problems.ts';
import { builder } from './builder.ts';
import { LaunchRunSuccessRef } from './launch.ts';
import {
  ForbiddenRef,
  IdempotencyConflictRef,
  IllegalStateRef,
  InvalidInputRef,
  NotFoundRef,
  RunConfigValidationInvalidRef,
  UnavailableRef,
} from './problems.ts';
import { withPublicConflict } from './public-ids.ts';
import { refusedName } from './restrictions.ts';
import { change } from './save.ts';
import { traced } from './traced.ts';

const RerunInput = builder.inputType('RerunInput', {
  description: 'A run to execute again.',
  fields: (t) => ({
    runId: t.id({ required: true, description: 'The run that is over.' }),
    onlyFailed: t.boolean({
      defaultValue: true,
      description:
        'True: only what failed or was cancelled, and the steps that depend on that; the outputs of the others are taken over. False: everything.',
    }),
    idempotencyKey: t.string({
      description:
        'With the same key and the same input the first rerun is given again, replayed true; with another input IdempotencyConflict. Keys of reruns are not those of launches. Kept for at least 7 days.',
    }),
    config: t.field({
      type: 'JSON',
      description:
        "In place of the old run's config, for the tasks that are executed; an object that satisfies the schema of the job's version. Absent: the old one.",
    }),
    priority: t.int({
      description: '-1000 to 1000, for all tasks that are executed; default 100 above what each had.',
    }),
  }),
});

const RerunResult = builder.unionType('RerunResult', {
  description: 'What became of a rerun.',
  types: [
    LaunchRunSuccessRef,
    RunConfigValidationInvalidRef,
    NotFoundRef,
    IllegalStateRef,
    IdempotencyConflictRef,
    InvalidInputRef,
    UnavailableRef,
    ForbiddenRef,
  ],
  resolveType: ({ kind }) => kind,
});

builder.mutationField('rerun', (t) =>
  t.field({
    type: RerunResult,
    nullable: true,
    description:
      'Executes a terminal run again, as a new run of the same version of its job, also when the job is disabled by now. Customer, labels, correlation id and serial keys are the same; parentRun is the old one. IllegalState when the run is not over, or when nothing of it failed and onlyFailed is true. Needs LAUNCH.',
    args: { input: t.arg({ type: RerunInput, required: true, description: 'Which run, and how.' }) },
    resolve: (_, { input }, context) =>
      change(context, 'LAUNCH', async (actor) => {
        const runId = fromPublicId('run', input.runId);
        if (runId === null) return notFound('run', input.runId);
        const run = await context.loaders.run(runId);
        const job = run && (await context.loaders.job(run.jobId));
        const forbidden = job && refusedName(context, 'jobs', job.name);
        if (forbidden) return forbidden;
        const asked = traced({ ...input, runId }, context);
        return withPublicConflict('run', await context.services.actions.rerun(asked, actor));
      }),
  }),
);
