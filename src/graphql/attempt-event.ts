import type { AttemptEvent, AttemptEventsOf, Changes } from '../changelog/types.ts';
import { fromPublicId, toPublicId, toPublicLogId } from '../domain/ids.ts';
import type { AppendAttemptEventsSuccess } from '../result/types.ts';
import { builder } from './builder.ts';
import { ChangeStream } from './change-stream.ts';
import { badUserInput, streamError } from './errors.ts';
import { ForbiddenRef, InvalidInputRef, LeaseTokenInvalidRef, UnavailableRef } from './problems.ts';
import { AttemptEventRef, AttemptRef } from './refs.ts';
import { ifPayload } from './scopes.ts';

AttemptEventRef.implement({
  description:
    'What an agent tells about its progress: thought, tool_call, tool_result, reflection, references, final_answer, log …',
  fields: (t) => ({
    id: t.id({
      description: 'The event, aev_…: the same whenever it is sent again.',
      resolve: ({ number }) => toPublicLogId('aev', number),
    }),
    sequence: t.exposeInt('sequence', { description: '1, 2, 3 … within the attempt, without gaps.' }),
    attemptId: t.id({
      description: 'The attempt that told it.',
      resolve: ({ attemptId }) => toPublicId('att', attemptId),
    }),
    taskId: t.id({ description: 'Its task.', resolve: ({ taskId }) => toPublicId('task', taskId) }),
    type: t.exposeString('type', {
      description: 'What kind of event it is: one of the vocabulary or an own one.',
    }),
    at: t.expose('at', {
      type: 'DateTime',
      description: 'When it happened, as the agent said; else when it was appended.',
    }),
    data: t.field({
      type: 'JSON',
      nullable: true,
      description: 'What it tells, in the shape of its type. Needs PAYLOAD_READ, else null.',
      resolve: ({ data }, _, context) => ifPayload(context, () => data),
    }),
    attempt: t.field({
      type: AttemptRef,
      nullable: true,
      description: 'The attempt as it is now.',
      resolve: ({ attemptId }, _, { loaders }) => loaders.attempt(attemptId),
    }),
  }),
});

const LeaseRefInput = builder.inputType('LeaseRef', {
  description: 'An attempt with the token that came with it, which is its credential.',
  fields: (t) => ({
    attemptId: t.id({ required: true, description: 'The attempt.' }),
    leaseToken: t.string({ required: true, description: 'The token that came with it.' }),
  }),
});
const AttemptEventInput = builder.inputType('AttemptEventInput', {
  description: 'An event of an attempt.',
  fields: (t) => ({
    type: t.string({
      required: true,
      description: 'What kind it is, 1 to 200 bytes: one of the vocabulary or an own one.',
    }),
    data: t.field({
      type: 'JSON',
      description: 'What it tells; at most 64 KiB. Text that cannot be stored is repaired with U+FFFD.',
    }),
    at: t.field({ type: 'DateTime', description: 'When it happened; default when it is appended.' }),
  }),
});
const AppendAttemptEventsSuccessRef = builder
  .objectRef<AppendAttemptEventsSuccess>('AppendAttemptEventsSuccess')
  .implement({
    description: 'The events are stored.',
    fields: (t) => ({
      lastSequence: t.exposeInt('lastSequence', {
        description: 'Sequence of the last event of the attempt; 0 when it has none.',
      }),
    }),
  });
const AppendAttemptEventsResult = builder.unionType('AppendAttemptEventsResult', {
  description: 'What became of events that were to be appended.',
  types: [AppendAttemptEventsSuccessRef, LeaseTokenInvalidRef, InvalidInputRef, UnavailableRef, ForbiddenRef],
  resolveType: ({ kind }) => kind,
});

builder.mutationField('appendAttemptEvents', (t) =>
  t.field({
    type: AppendAttemptEventsResult,
    nullable: true,
    description:
      'Tells what an attempt does, in order, also after its lease is gone. An attempt has at most 20,000 events and 32 MiB of them. The lease token is the credential.',
    args: {
      lease: t.arg({ type: LeaseRefInput, required: true, description: 'The attempt.' }),
      events: t.arg({
        type: [AttemptEventInput],
        required: true,
        description: 'At most 500; all are stored or none. An empty list asks for the last sequence.',
      }),
      firstSequence: t.arg.int({
        description:
          'Sequence of the first of them, so that a repeated append stores nothing twice; at most one after the last. Absent appends after what is there.',
      }),
    },
    resolve: (_, input, { services }) => services.attemptEvents.append(input),
  }),
);

const AttemptEventsOfInput = builder.inputType('AttemptEventsOf', {
  description: 'Whose events: exactly one of these.',
  isOneOf: true,
  fields: (t) => ({
    runId: t.id({ description: 'Of all attempts of a run.' }),
    taskId: t.id({ description: 'Of all attempts of a task.' }),
    attemptId: t.id({ description: 'Of one attempt.' }),
  }),
});
const AttemptEvents = builder.objectRef<Changes<AttemptEvent>>('AttemptEvents').implement({
  description: 'A message of the stream. An empty one every 15 s carries the cursor forward.',
  fields: (t) => ({
    cursor: t.expose('cursor', {
      type: 'Cursor',
      description: 'Resume after it to get everything that comes after this message.',
    }),
    caughtUp: t.exposeBoolean('caughtUp', {
      description: 'Whether the backlog is through: what follows is live.',
    }),
    events: t.field({
      type: [AttemptEventRef],
      description: 'Events, in order per attempt.',
      resolve: ({ changes }) => changes,
    }),
  }),
});

function toAttemptEventsOf(of: typeof AttemptEventsOfInput.$inferInput): AttemptEventsOf {
  const uuid = (prefix: 'run' | 'task' | 'att', field: string, id: string): string => {
    const found = fromPublicId(prefix, id);
    if (found === null) throw badUserInput(`of.${field}`, `of.${field} is not an id ${prefix}_….`);
    return found;
  };
  if (of.runId != null) return { runId: uuid('run', 'runId', of.runId) };
  if (of.taskId != null) return { taskId: uuid('task', 'taskId', of.taskId) };
  return { attemptId: uuid('att', 'attemptId', of.attemptId ?? '') };
}

builder.subscriptionField('attemptEvents', (t) =>
  t.field({
    type: AttemptEvents,
    description:
      'What agents tell about their progress. Completes when the run or task is terminal, or the attempt ended, and everything was sent. Needs READ, data PAYLOAD_READ.',
    args: {
      of: t.arg({ type: AttemptEventsOfInput, required: true, description: 'Whose events.' }),
      after: t.arg({
        type: 'Cursor',
        description:
          'Cursor of a message, of a launch or changeLogCursor to resume after; absent starts now. A Last-Event-ID of the request wins over it.',
      }),
    },
    subscribe: async (_, { of, after }, context) => {
      const whose = toAttemptEventsOf(of);
      try {
        const events = await context.services.changeLog.attemptEvents(
          whose,
          context.lastEventId ?? after ?? null,
        );
        return new ChangeStream(() => events);
      } catch (error) {
        throw streamError(error);
      }
    },
    resolve: (events) => events,
  }),
);
