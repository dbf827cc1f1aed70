import { inNfc } from '../domain/text.ts';
import { builder } from './builder.ts';
import { JobConnection, pageArgs, RunConnection } from './connections.ts';
import { StepConditionEnum } from './enums.ts';
import { JobStepRef } from './job-step.ts';
import { idOf, JobRef, Node, RouteRef } from './refs.ts';
import { change, ifVersion, saveResult } from './save.ts';

JobRef.implement({
  description: 'A definition that can be launched: a schema for its config and one or more steps.',
  interfaces: [Node],
  fields: (t) => ({
    id: t.id(idOf('job')),
    name: t.exposeString('name', { description: 'Unique; never changes.' }),
    description: t.exposeString('description', { nullable: true, description: 'What it is for.' }),
    configSchema: t.expose('configSchema', {
      type: 'JSON',
      nullable: true,
      description: 'JSON Schema (2020-12) that the config of a launch must satisfy; null accepts any object.',
    }),
    steps: t.field({
      type: [JobStepRef],
      description: 'Its parts, 1 to 100.',
      resolve: ({ steps }) => steps,
    }),
    enabled: t.exposeBoolean('enabled', { description: 'Whether it can be launched.' }),
    version: t.exposeInt('version', {
      description: 'Raised by every change. A run keeps the version that it was launched with.',
    }),
    routes: t.field({
      type: [RouteRef],
      description: 'The routes that launch it, by name.',
      resolve: async (job, _, { loaders }) => (await loaders.jobRoutes(job.id)) ?? [],
    }),
    runs: t.field({
      type: RunConnection,
      nullable: true,
      description: 'Its runs, newest first.',
      args: pageArgs,
      resolve: (job, page, { loaders }) => loaders.jobRuns(job.id, page),
    }),
  }),
});

const JobStepInput = builder.inputType('JobStepInput', {
  description: 'A step of a job.',
  fields: (t) => ({
    name: t.string({ required: true, description: 'Unique within the job; 1 to 200 bytes.' }),
    agent: t.string({ required: true, description: 'Name of the agent that executes it.' }),
    dependsOn: t.stringList({
      description: 'Names of the steps that it waits for, at most 100; default none.',
    }),
    when: t.field({
      type: StepConditionEnum,
      description: 'How those must have ended; default DEPENDENCIES_COMPLETED.',
    }),
    cancellable: t.boolean({ description: 'False: only a cancel of this very task stops it. Default true.' }),
    optional: t.boolean({
      description: 'True: its failure fails neither its dependents nor the run. Default false.',
    }),
    input: t.field({
      type: 'JSON',
      description:
        "json-e template over { config, run, event, steps } for the task's input, at most 1 MiB (docs/templates.md); absent passes the config.",
    }),
    assetKey: t.string({ description: 'The asset that it materializes, in 1 to 200 bytes; default none.' }),
    readsAssetKeys: t.stringList({ description: 'The assets that it reads, at most 100; default none.' }),
    maxAttempts: t.int({
      description:
        "Attempts that count before it fails, 1 to 1000; absent leaves it to the agent's retry policy.",
    }),
  }),
});

const SaveJobInput = builder.inputType('SaveJobInput', {
  description: 'A job as a whole: what is absent takes its default.',
  fields: (t) => ({
    name: t.string({ required: true, description: '1 to 200 bytes.' }),
    description: t.string({ description: 'What it is for; at most 8,192 bytes, default none.' }),
    configSchema: t.field({
      type: 'JSON',
      description: 'JSON Schema (2020-12) of the config, at most 1 MiB; absent accepts any object.',
    }),
    steps: t.field({ type: [JobStepInput], required: true, description: '1 to 100 steps.' }),
    enabled: t.boolean({ description: 'Whether it can be launched; default true.' }),
    ifVersion: t.int({ description: ifVersion('job') }),
  }),
});

const SaveJobResult = saveResult('job', JobRef, (loaders) => loaders.job);

builder.queryFields((t) => ({
  job: t.field({
    type: JobRef,
    nullable: true,
    description: 'A job by its name; null when there is none. Needs READ.',
    args: { name: t.arg.string({ required: true, description: 'Name of the job.' }) },
    resolve: (_, { name }, context) => context.services.read.jobs.byName(inNfc(name)),
  }),
  jobs: t.field({
    type: JobConnection,
    nullable: true,
    description: 'All jobs, oldest first. Needs READ.',
    args: pageArgs,
    resolve: (_, page, context) => context.services.read.jobs.list(page),
  }),
}));

builder.mutationField('saveJob', (t) =>
  t.field({
    type: SaveJobResult,
    nullable: true,
    description: 'Creates or replaces a job, by its name. Needs CONFIGURE.',
    args: { input: t.arg({ type: SaveJobInput, required: true, description: 'The job.' }) },
    resolve: (_, { input }, context) =>
      change(context, 'CONFIGURE', (actor) => context.services.configuration.saveJob(input, actor)),
  }),
);
