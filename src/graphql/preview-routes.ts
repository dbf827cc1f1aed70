import { isInvalidInput } from '../domain/problems.ts';
import type { RoutePreview } from '../operator/preview-types.ts';
import { builder } from './builder.ts';
import { badUserInput } from './errors.ts';
import { needs } from './needs.ts';
import { SaveRouteInput } from './route.ts';
import { LabelRef, toLabels } from './values.ts';

const RoutePreviewRef = builder.objectRef<RoutePreview>('RoutePreview').implement({
  description:
    'What a route would make of a message. What its templates give is null where one of them fails, or its job is disabled.',
  fields: (t) => ({
    route: t.exposeString('route', { description: 'Name of the route.' }),
    job: t.exposeString('job', { description: 'Name of the job that it launches.' }),
    config: t.field({
      type: 'JSON',
      nullable: true,
      description: "The run's config, also one that the job's schema refuses.",
      resolve: ({ launch }) => launch?.config,
    }),
    customer: t.string({
      nullable: true,
      description: "The run's customer; null is none.",
      resolve: ({ launch }) => launch?.customer,
    }),
    labels: t.field({
      type: [LabelRef],
      nullable: true,
      description: "The run's labels, by key.",
      resolve: ({ launch }) => launch && toLabels(launch.labels),
    }),
    serialKey: t.string({
      nullable: true,
      description: "The run's serial key; null is none.",
      resolve: ({ launch }) => launch?.serialKey,
    }),
    estimatedTokens: t.field({
      type: 'SafeInt',
      nullable: true,
      description: 'Tokens that each task is expected to use; null leaves it to what is learned.',
      resolve: ({ launch }) => launch?.estimatedTokens,
    }),
    priority: t.int({
      nullable: true,
      description: "The run's priority.",
      resolve: ({ launch }) => launch?.priority,
    }),
    problem: t.exposeString('problem', {
      nullable: true,
      description: 'Why it would not launch, with the place in the template; null: it would.',
    }),
  }),
});

builder.queryField('previewRoutes', (t) =>
  t.field({
    type: [RoutePreviewRef],
    nullable: true,
    ...needs('CONFIGURE'),
    description:
      'What would be launched for this message, by the names of the routes, without storing or launching anything: one entry for each enabled route whose pattern matches the topic. BAD_USER_INPUT where publishEvent would answer InvalidInput. Needs CONFIGURE.',
    args: {
      topic: t.arg.string({ required: true, description: 'Tokens split by dots, without wildcards.' }),
      payload: t.arg({ type: 'JSON', required: true, description: 'What the message says.' }),
      draft: t.arg({
        type: SaveRouteInput,
        description:
          'A route to try before it is saved, enabled or not, in place of the saved one of its name. Its faults are told as its problem.',
      }),
    },
    resolve: async (_, { topic, payload, draft }, context) => {
      const previews = await context.services.configuration.previewRoutes({ topic, payload, draft });
      if (isInvalidInput(previews)) throw badUserInput(previews.field ?? '', previews.message);
      return previews;
    },
  }),
);
