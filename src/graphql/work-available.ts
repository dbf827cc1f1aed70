import type { WorkAvailable } from '../dispatch/types.ts';
import { builder } from './builder.ts';
import { ChangeStream } from './change-stream.ts';
import { forbiddenStream, streamError } from './errors.ts';
import { needs } from './needs.ts';
import { refusedName } from './restrictions.ts';

const WorkAvailableRef = builder.objectRef<WorkAvailable>('WorkAvailable').implement({
  description: 'A message of the stream. An empty one every 15 s says that the server is there.',
  fields: (t) => ({
    agents: t.field({
      type: ['String'],
      description:
        'Names of the agents that have tasks and room for one: claimTasks is worth a call for them. Empty: for none, as far as is known.',
      resolve: ({ agents }) => agents,
    }),
  }),
});

builder.subscriptionField('workAvailable', (t) =>
  t.field({
    type: WorkAvailableRef,
    ...needs('WORK'),
    description:
      'A hint to pull workers that claimTasks is worth a call; carries no work, and several workers may get the same. At once how it is now, then when something can be claimed, at most four times a second. Needs WORK.',
    args: {
      agents: t.arg.stringList({ description: 'Names of pull agents.' }),
      pool: t.arg.string({
        description:
          'Name of a pool: the pull agents of the queues that it runs, as in claimTasks. With agents both must match; neither is refused.',
      }),
    },
    subscribe: async (_, { agents, pool }, context) => {
      const { services, viewer } = context;
      const refusal = agents
        ?.map((name) => refusedName(context, 'agents', name))
        .find((found) => found !== null);
      if (refusal) throw forbiddenStream(refusal);
      try {
        const hints = await services.workHints.open({ agents: agents ?? viewer.restrictions.agents, pool });
        return new ChangeStream(() => hints);
      } catch (error) {
        throw streamError(error);
      }
    },
    resolve: (hint) => hint,
  }),
);
