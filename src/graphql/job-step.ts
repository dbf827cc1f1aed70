import type { StepDefinition } from '../domain/job-definition.ts';
import { builder } from './builder.ts';
import { StepConditionEnum } from './enums.ts';
import { AgentRef } from './refs.ts';

export const toSteps = (steps: StepDefinition[] | null): StepDefinition[] => steps ?? [];

export const JobStepRef = builder.objectRef<StepDefinition>('JobStep').implement({
  description: 'One part of a job; each run has one task for it.',
  fields: (t) => ({
    name: t.exposeString('name', { description: 'Unique within the job.' }),
    agent: t.field({
      type: AgentRef,
      description: 'Who executes it, as it is now.',
      resolve: async (step, _, { loaders }) => {
        const agent = await loaders.agent(step.agentId);
        if (!agent) throw new Error('The agent of a step is gone.');
        return agent;
      },
    }),
    dependsOn: t.exposeStringList('dependsOn', { description: 'Names of the steps that it waits for.' }),
    when: t.field({
      type: StepConditionEnum,
      description: 'How those steps must have ended.',
      resolve: (step) => step.when,
    }),
    cancellable: t.exposeBoolean('cancellable', {
      description: 'False: clean-up work that only a cancel of this very task stops.',
    }),
    input: t.expose('input', {
      type: 'JSON',
      nullable: true,
      description:
        "json-e template over { config, run, event, steps } that gives the task's input (docs/templates.md); null passes the config.",
    }),
    optional: t.exposeBoolean('optional', {
      description:
        'True: its final failure leaves a dead letter but fails neither its dependents nor the run.',
    }),
    assetKey: t.exposeString('assetKey', { nullable: true, description: 'The asset that it materializes.' }),
    readsAssetKeys: t.exposeStringList('readsAssetKeys', { description: 'The assets that it reads.' }),
    maxAttempts: t.int({
      description:
        "Attempts that count before it fails; the agent's retry policy decides where the step does not say.",
      resolve: async (step, _, { loaders }) =>
        step.maxAttempts ?? (await loaders.agent(step.agentId))?.retryPolicy.maxAttempts ?? 1,
    }),
  }),
});
