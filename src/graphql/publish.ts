import { fromPublicId, toPublicId } from '../domain/ids.ts';
import { notFound } from '../domain/problems.ts';
import type { PublishEventSuccess } from '../intake/types.ts';
import { builder } from './builder.ts';
import { RouteRefusalRef } from './event.ts';
import { LabelInput } from './label-input.ts';
import {
  ForbiddenRef,
  IdempotencyConflictRef,
  InvalidInputRef,
  NotFoundRef,
  UnavailableRef,
} from './problems.ts';
import { withPublicConflict } from './public-ids.ts';
import { EventRef, RunRef } from './refs.ts';
import { eachAllowed, refusedName } from './restrictions.ts';
import { change } from './save.ts';
import { refused } from './scopes.ts';
import { traced } from './traced.ts';

const PublishEventInput = builder.inputType('PublishEventInput', {
  description:
    'An event to store and to launch from. Runs take customer and labels from here where the route gives none.',
  fields: (t) => ({
    topic: t.string({
      required: true,
      description: 'Tokens split by dots, without wildcards; at most 200 bytes.',
    }),
    payload: t.field({ type: 'JSON', required: true, description: 'What it says.' }),
    idempotencyKey: t.string({
      description:
        "Unique per topic, kept for at least 7 days. Absent is the payload's idempotency_key, else none.",
    }),
    correlationId: t.string({ description: "Absent is the payload's correlation_id, else the event's id." }),
    customer: t.string({ description: 'Whom the work is for.' }),
    labels: t.field({ type: [LabelInput], description: 'At most 32.' }),
  }),
});

const PublishEventSuccessRef = builder.objectRef<PublishEventSuccess>('PublishEventSuccess').implement({
  description:
    'The event is stored, and good routes launched in the same transaction. Without a matching route there are no runs.',
  fields: (t) => ({
    eventId: t.id({ description: 'The event, evt_….', resolve: ({ eventId }) => toPublicId('evt', eventId) }),
    runIds: t.idList({
      description: 'The runs that it launched, run_….',
      resolve: ({ runIds }) => runIds.map((id) => toPublicId('run', id)),
    }),
    refusals: t.field({
      type: [RouteRefusalRef],
      description: 'Matching routes that did not launch, and why.',
      resolve: ({ refusals }) => refusals,
    }),
    replayed: t.exposeBoolean('replayed', {
      description: 'Whether the same event was stored before; of a replay, that nothing was left to launch.',
    }),
    cursor: t.expose('cursor', {
      type: 'Cursor',
      description: 'Position in the change log before the first changes of the runs that this call launched.',
    }),
    event: t.field({
      type: EventRef,
      nullable: true,
      description: 'The event. Needs READ, else null.',
      resolve: ({ eventId }, _, context) => context.loaders.event(eventId),
    }),
    runs: t.field({
      type: [RunRef],
      nullable: true,
      description: 'The runs that it launched. Needs READ, else null.',
      resolve: async ({ runIds }, _, context) => {
        const runs = await Promise.all(runIds.map((id) => context.loaders.run(id)));
        return runs.filter((run) => run !== null);
      },
    }),
  }),
});

const PublishEventResult = builder.unionType('PublishEventResult', {
  description: 'What became of an event.',
  types: [
    PublishEventSuccessRef,
    NotFoundRef,
    IdempotencyConflictRef,
    InvalidInputRef,
    UnavailableRef,
    ForbiddenRef,
  ],
  resolveType: ({ kind }) => kind,
});

builder.mutationFields((t) => ({
  publishEvent: t.field({
    type: PublishEventResult,
    nullable: true,
    description: 'Stores an event and launches what its routes say. Needs PUBLISH.',
    args: { input: t.arg({ type: PublishEventInput, required: true, description: 'The event.' }) },
    resolve: async (_, { input }, context) => {
      const forbidden = refused(context, 'PUBLISH') ?? refusedName(context, 'topics', input.topic);
      if (forbidden) return forbidden;
      const [outcome] = await context.services.intake.publishEvents([traced(input, context)]);
      return outcome && withPublicConflict('evt', outcome);
    },
  }),
  replayEvent: t.field({
    type: PublishEventResult,
    nullable: true,
    description:
      'Launches what routes launch of a stored event by now and did not yet, such as a route that was added or repaired; what launched before is not launched again. An event that was rejected is checked again, and launched from when it is right. runIds are all runs of its routes, refusals those of now. NotFound: there is no such event. Needs OPERATE.',
    args: { id: t.arg.id({ required: true, description: 'The event, evt_….' }) },
    resolve: (_, { id }, context) =>
      change(context, 'OPERATE', async (actor) => {
        const eventId = fromPublicId('evt', id);
        if (eventId === null) return notFound('event', id);
        return withPublicConflict('evt', await context.services.actions.replayEvent({ eventId }, actor));
      }),
  }),
  publishEvents: t.field({
    type: [PublishEventResult],
    nullable: true,
    description: 'Publishes events, each on its own. Results in input order. Needs PUBLISH.',
    args: { inputs: t.arg({ type: [PublishEventInput], required: true, description: 'At most 1,000.' }) },
    resolve: async (_, { inputs }, context) => {
      const forbidden = refused(context, 'PUBLISH');
      if (forbidden) return inputs.map(() => forbidden);
      const outcomes = await eachAllowed(
        inputs,
        ({ topic }) => refusedName(context, 'topics', topic),
        (allowed) => context.services.intake.publishEvents(allowed.map((input) => traced(input, context))),
      );
      return outcomes.map((outcome) => withPublicConflict('evt', outcome));
    },
  }),
}));
