import { inNfc } from '../domain/text.ts';
import { builder } from './builder.ts';
import { pageArgs, RouteConnection } from './connections.ts';
import { DeleteResult, withPublicDeleted } from './delete-result.ts';

import { idOf, JobRef, Node, RouteRef } from './refs.ts';
import { change, ifVersion, saveResult } from './save.ts';

const overEvent = 'json-e template over { event, payload }';
const template = `${overEvent}, at most 1 MiB (docs/templates.md),`;

RouteRef.implement({
  description:
    'An event whose topic matches launches the job. Several routes may match one topic; each launches.',
  interfaces: [Node],
  fields: (t) => ({
    id: t.id(idOf('route')),
    name: t.exposeString('name', { description: 'Unique.' }),
    topic: t.exposeString('topic', {
      description: 'Tokens split by dots: * is one token, > at the end is the rest.',
    }),
    job: t.field({
      type: JobRef,
      description: 'The job that it launches.',
      resolve: async (route, _, { loaders }) => {
        const job = await loaders.job(route.jobId);
        if (!job) throw new Error('The job of a route is gone.');
        return job;
      },
    }),
    config: t.expose('config', {
      type: 'JSON',
      nullable: true,
      description: `${overEvent} for the run's config; null passes the payload.`,
    }),
    customer: t.expose('customer', {
      type: 'JSON',
      nullable: true,
      description: `${overEvent} for the customer; null is the event's.`,
    }),
    labels: t.expose('labels', {
      type: 'JSON',
      nullable: true,
      description: `${overEvent} for an object of strings; null is the event's.`,
    }),
    serialKey: t.expose('serialKey', {
      type: 'JSON',
      nullable: true,
      description: `${overEvent} for the serial key; null is none.`,
    }),
    estimatedTokens: t.expose('estimatedTokens', {
      type: 'JSON',
      nullable: true,
      description: `${overEvent} for the estimate; null is none.`,
    }),
    priority: t.exposeInt('priority', { description: 'Of the runs, -1000 to 1000, higher first.' }),
    enabled: t.exposeBoolean('enabled', { description: 'Whether it launches.' }),
    version: t.exposeInt('version', { description: 'Raised by every change.' }),
  }),
});

export const SaveRouteInput = builder.inputType('SaveRouteInput', {
  description: 'A route as a whole: what is absent takes its default.',
  fields: (t) => ({
    name: t.string({ required: true, description: '1 to 200 bytes.' }),
    topic: t.string({
      required: true,
      description: 'Tokens split by dots: * is one token, > at the end is the rest. At most 200 bytes.',
    }),
    job: t.string({ required: true, description: 'Name of the job that it launches.' }),
    config: t.field({
      type: 'JSON',
      description: `${template} for the run's config; absent passes the payload.`,
    }),
    customer: t.field({
      type: 'JSON',
      description: `${template} for the customer, a text or null; absent is the event's.`,
    }),
    labels: t.field({
      type: 'JSON',
      description: `${template} for the labels, an object of at most 32 strings; absent are the event's.`,
    }),
    serialKey: t.field({
      type: 'JSON',
      description: `${template} for the serial key, a text or null; absent is none.`,
    }),
    estimatedTokens: t.field({
      type: 'JSON',
      description: `${template} for the tokens that each task is expected to use, an integer from 0 or null; absent leaves it to what is learned.`,
    }),
    priority: t.int({ description: 'Of the runs, -1000 to 1000; default 0.' }),
    enabled: t.boolean({ description: 'Whether it launches; default true.' }),
    ifVersion: t.int({ description: ifVersion('route') }),
  }),
});

const SaveRouteResult = saveResult('route', RouteRef, (loaders) => loaders.route);

builder.queryField('routes', (t) =>
  t.field({
    type: RouteConnection,
    nullable: true,
    description: 'Routes, oldest first. Needs READ.',
    args: {
      ...pageArgs,
      topic: t.arg.string({ description: 'Only those whose pattern matches this topic.' }),
    },
    resolve: (_, { topic, ...page }, context) =>
      context.services.read.routes.list(inNfc(topic) ?? null, page),
  }),
);

builder.mutationFields((t) => ({
  saveRoute: t.field({
    type: SaveRouteResult,
    nullable: true,
    description: 'Creates or replaces a route, by its name. Needs CONFIGURE.',
    args: { input: t.arg({ type: SaveRouteInput, required: true, description: 'The route.' }) },
    resolve: (_, { input }, context) =>
      change(context, 'CONFIGURE', (actor) => context.services.configuration.saveRoute(input, actor)),
  }),
  deleteRoute: t.field({
    type: DeleteResult,
    nullable: true,
    description: 'Deletes a route; what it launched stays. Needs CONFIGURE.',
    args: { name: t.arg.string({ required: true, description: 'Name of the route.' }) },
    resolve: (_, input, context) =>
      change(context, 'CONFIGURE', async (actor) =>
        withPublicDeleted('route', await context.services.configuration.deleteRoute(input, actor)),
      ),
  }),
}));
