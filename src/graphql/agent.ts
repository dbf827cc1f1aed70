import { inNfc } from '../domain/text.ts';
import type { AgentRow } from '../read/agents.ts';
import { builder } from './builder.ts';
import { AgentConnection, pageArgs } from './connections.ts';
import { AgentRef, idOf, Node, QueueRef, ThrottleRef } from './refs.ts';
import { RetryPolicyInput, RetryPolicyRef } from './retry-policy.ts';
import { change, ifVersion, saveResult } from './save.ts';

const PullDispatchRef = builder
  .objectRef<{ kind: 'PullDispatch'; batchBySerialKey: boolean }>('PullDispatch')
  .implement({
    description: 'Workers ask for work with claimTasks.',
    fields: (t) => ({
      batchBySerialKey: t.exposeBoolean('batchBySerialKey', {
        description:
          'Whether all waiting tasks of one serial key are claimed together, as far as limits and the claim leave room.',
      }),
    }),
  });
const InlineDispatchRef = builder
  .objectRef<{ kind: 'InlineDispatch'; handler: string }>('InlineDispatch')
  .implement({
    description: 'A handler in the server process does the work.',
    fields: (t) => ({ handler: t.exposeString('handler', { description: 'Name of the handler.' }) }),
  });
const Dispatch = builder.unionType('Dispatch', {
  description: 'How work reaches an agent. Further ways may come.',
  types: [PullDispatchRef, InlineDispatchRef],
  resolveType: ({ kind }) => kind,
});
const toDispatch = ({ handler, batchBySerialKey }: AgentRow) =>
  handler === null
    ? ({ kind: 'PullDispatch', batchBySerialKey } as const)
    : ({ kind: 'InlineDispatch', handler } as const);

AgentRef.implement({
  description:
    'What executes tasks: how work reaches it, how much it may do at once, how it is retried and priced.',
  interfaces: [Node],
  fields: (t) => ({
    id: t.id(idOf('agent')),
    name: t.exposeString('name', { description: 'Unique; never changes.' }),
    description: t.exposeString('description', { nullable: true, description: 'What it is for.' }),
    dispatch: t.field({ type: Dispatch, description: 'How work reaches it.', resolve: toDispatch }),
    queue: t.field({
      type: QueueRef,
      description: 'The queue where its tasks wait.',
      resolve: async (agent, _, { loaders }) => {
        const queue = await loaders.queue(agent.queueId);
        if (!queue) throw new Error('The queue of an agent is gone.');
        return queue;
      },
    }),
    throttles: t.field({
      type: [ThrottleRef],
      description: 'Limits that it shares with others; all of them must have room. At most 4, by name.',
      resolve: async (agent, _, { loaders }) => (await loaders.agentThrottles(agent.id)) ?? [],
    }),
    maxConcurrentTasks: t.exposeInt('maxConcurrentTasks', {
      nullable: true,
      description: 'Its own limit beside its throttles; null is none.',
    }),
    retryPolicy: t.field({
      type: RetryPolicyRef,
      description: 'How failed attempts are repeated.',
      resolve: ({ retryPolicy }) => retryPolicy,
    }),
    leaseSeconds: t.exposeInt('leaseSeconds', {
      description:
        'A lease that is not extended for so many seconds is lost, and the task goes back to its queue.',
    }),
    timeoutSeconds: t.exposeInt('timeoutSeconds', {
      nullable: true,
      description: 'No attempt runs longer, in seconds, heartbeats or not; null is no limit.',
    }),
    defaultModel: t.exposeString('defaultModel', {
      nullable: true,
      description: 'The model where a result names none.',
    }),
    computeCostPerHour: t.expose('computeCostPerHour', {
      type: 'Decimal',
      nullable: true,
      description: 'USD for an hour of attempt time; null when it is billed elsewhere.',
    }),
    paused: t.exposeBoolean('paused', {
      description: 'Whether nothing of it is claimed. What runs goes on.',
    }),
    version: t.exposeInt('version', { description: 'Raised by every change.' }),
  }),
});

const PullDispatchInput = builder.inputType('PullDispatchInput', {
  description: 'Workers ask for work with claimTasks.',
  fields: (t) => ({
    batchBySerialKey: t.boolean({
      description: 'Claim all waiting tasks of a serial key together; default false.',
    }),
  }),
});
const InlineDispatchInput = builder.inputType('InlineDispatchInput', {
  description: 'A handler in the server process does the work.',
  fields: (t) => ({
    handler: t.string({
      required: true,
      description:
        "Name of the handler: a function in the code of the server (src/app.ts brings them together; those of this version belong to the knowledge pipeline). Whether there is one is not checked here: while no live server has it, the agent's tasks wait, with the reason NO_WORKER.",
    }),
  }),
});
const DispatchInput = builder.inputType('DispatchInput', {
  description: 'How work reaches an agent: exactly one of the fields.',
  isOneOf: true,
  fields: (t) => ({
    pull: t.field({ type: PullDispatchInput, description: 'Workers ask for it.' }),
    inline: t.field({ type: InlineDispatchInput, description: 'The server does it.' }),
  }),
});

const SaveAgentInput = builder.inputType('SaveAgentInput', {
  description: 'An agent as a whole: what is absent takes its default. Whether it is paused stays as it is.',
  fields: (t) => ({
    name: t.string({ required: true, description: '1 to 200 bytes.' }),
    description: t.string({ description: 'What it is for; at most 8,192 bytes, default none.' }),
    dispatch: t.field({ type: DispatchInput, required: true, description: 'How work reaches it.' }),
    queue: t.string({ description: 'Name of its queue; default is the one that is named default.' }),
    throttles: t.stringList({ description: 'Names of at most 4 throttles; default none.' }),
    maxConcurrentTasks: t.int({ description: 'Its own limit, 0 to 2,147,483,647; absent is none.' }),
    retryPolicy: t.field({
      type: RetryPolicyInput,
      description: 'How failed attempts are repeated; each of its fields has a default.',
    }),
    leaseSeconds: t.int({
      description:
        'A lease that is not extended for so many seconds is lost; 5 to 3,600, default 60. A claim may ask for others.',
    }),
    timeoutSeconds: t.int({
      description: 'No attempt runs longer, in seconds, heartbeats or not; 1 to 86,400, absent is no limit.',
    }),
    defaultModel: t.string({
      description: 'The model where a result names none, in 1 to 200 bytes; default none.',
    }),
    computeCostPerHour: t.field({
      type: 'Decimal',
      description:
        'USD for an hour of attempt time, from 0, with at most 18 digits before and 12 after the point; absent: its time costs nothing here.',
    }),
    ifVersion: t.int({ description: ifVersion('agent') }),
  }),
});

const SaveAgentResult = saveResult('agent', AgentRef, (loaders) => loaders.agent);

builder.queryFields((t) => ({
  agent: t.field({
    type: AgentRef,
    nullable: true,
    description: 'An agent by its name; null when there is none. Needs READ.',
    args: { name: t.arg.string({ required: true, description: 'Name of the agent.' }) },
    resolve: (_, { name }, context) => context.loaders.agentByName(inNfc(name)),
  }),
  agents: t.field({
    type: AgentConnection,
    nullable: true,
    description: 'All agents, oldest first. Needs READ.',
    args: pageArgs,
    resolve: (_, page, context) => context.services.read.agents.list(page),
  }),
}));

builder.mutationFields((t) => ({
  saveAgent: t.field({
    type: SaveAgentResult,
    nullable: true,
    description: 'Creates or replaces an agent, by its name. Needs CONFIGURE.',
    args: { input: t.arg({ type: SaveAgentInput, required: true, description: 'The agent.' }) },
    resolve: (_, { input }, context) =>
      change(context, 'CONFIGURE', (actor) => context.services.configuration.saveAgent(input, actor)),
  }),
  pauseAgent: t.field({
    type: SaveAgentResult,
    nullable: true,
    description: 'Nothing of the agent is claimed any more; what runs goes on. Needs OPERATE.',
    args: {
      name: t.arg.string({ required: true, description: 'Name of the agent.' }),
      reason: t.arg.string({ description: 'Why, for the audit log.' }),
    },
    resolve: (_, input, context) =>
      change(context, 'OPERATE', (actor) => context.services.configuration.pauseAgent(input, actor)),
  }),
  resumeAgent: t.field({
    type: SaveAgentResult,
    nullable: true,
    description: 'The agent is claimed from again. Needs OPERATE.',
    args: { name: t.arg.string({ required: true, description: 'Name of the agent.' }) },
    resolve: (_, input, context) =>
      change(context, 'OPERATE', (actor) => context.services.configuration.resumeAgent(input, actor)),
  }),
}));
