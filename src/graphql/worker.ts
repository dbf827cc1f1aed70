import { builder } from './builder.ts';
import { pageArgs, WorkerConnection } from './connections.ts';
import { AgentRef, idOf, Node, PoolRef, WorkerRef } from './refs.ts';

WorkerRef.implement({
  description: 'A process that executes tasks: a server replica or a pull worker.',
  interfaces: [Node],
  fields: (t) => ({
    id: t.id(idOf('wrk')),
    name: t.exposeString('name', { description: 'As the process calls itself; not unique.' }),
    client: t.exposeString('client', { nullable: true, description: 'Its client library and version.' }),
    agents: t.field({
      type: [AgentRef],
      description:
        'The agents that it serves, by name: all that it asked for in the last 60 seconds, or is busy with.',
      resolve: async (worker, _, { loaders }) => {
        const agents = await Promise.all(worker.agents.map((name) => loaders.agentByName(name)));
        return agents.filter((agent) => agent !== null);
      },
    }),
    pool: t.field({
      type: PoolRef,
      nullable: true,
      description:
        'The pool that it serves, the first by name where there are several; null when it names agents alone.',
      resolve: ({ pools: [name] }, _, { loaders }) => (name === undefined ? null : loaders.poolByName(name)),
    }),
    slots: t.exposeInt('slots', {
      nullable: true,
      description: 'Tasks that it can run at once, as it says.',
    }),
    busySlots: t.int({
      description: 'Tasks that it runs now; of a server replica without those that wait in it for a slot.',
      resolve: async (worker, _, { loaders }) => (await loaders.workerBusy(worker.id))?.busy ?? 0,
    }),
    startedAt: t.expose('startedAt', { type: 'DateTime', description: 'When it was first heard of.' }),
    lastSeenAt: t.expose('lastSeenAt', {
      type: 'DateTime',
      description: 'When it was last heard of, by a claim or a heartbeat, to some 10 seconds.',
    }),
  }),
});

builder.queryField('workers', (t) =>
  t.field({
    type: WorkerConnection,
    nullable: true,
    description: 'Workers, newest first. Needs READ.',
    args: {
      ...pageArgs,
      live: t.arg.boolean({
        defaultValue: true,
        description:
          'True: heard of in the last 60 seconds, or with a lease that holds. False: neither, or gone in good order. Null: all.',
      }),
    },
    resolve: (_, { live, ...page }, context) => context.services.read.workers.list(live ?? null, page),
  }),
);
