import type {
  ConfigError,
  Forbidden,
  IdempotencyConflict,
  IllegalState,
  InvalidInput,
  JobNotFound,
  LeaseTokenInvalid,
  NotFound,
  ResultConflict,
  RunConfigValidationInvalid,
  Unavailable,
} from '../domain/problems.ts';
import { builder } from './builder.ts';
import { ConfigErrorReason, ScopeEnum } from './enums.ts';
import { AttemptRef } from './refs.ts';

const Problem = builder.interfaceRef<{ message: string }>('Problem').implement({
  description: 'An expected failure of a command. Results may gain further members of it.',
  fields: (t) => ({
    message: t.exposeString('message', {
      description:
        'What is wrong and what to do. Of what was sent it quotes names, ids and keys, and of a template or schema the part that is wrong, never a payload or a credential.',
    }),
  }),
});

const problem = <Shape extends { message: string }>(name: string) => builder.objectRef<Shape>(name);

export const ConfigErrorRef = builder.objectRef<ConfigError>('ConfigError').implement({
  description: 'One fault of a config against its schema.',
  fields: (t) => ({
    message: t.exposeString('message', { description: 'The fault in words.' }),
    reason: t.field({ type: ConfigErrorReason, description: 'Its kind.', resolve: (error) => error.reason }),
    path: t.exposeStringList('path', { description: 'Keys from the root of the config to the fault.' }),
  }),
});

export const RunConfigValidationInvalidRef = problem<RunConfigValidationInvalid>(
  'RunConfigValidationInvalid',
).implement({
  description: "The config does not satisfy the job's schema. Nothing was launched.",
  interfaces: [Problem],
  fields: (t) => ({
    errors: t.field({ type: [ConfigErrorRef], description: 'Every fault.', resolve: ({ errors }) => errors }),
  }),
});
export const JobNotFoundRef = problem<JobNotFound>('JobNotFound').implement({
  description: 'There is no such job, or it is disabled.',
  interfaces: [Problem],
});
export const IdempotencyConflictRef = problem<IdempotencyConflict>('IdempotencyConflict').implement({
  description: 'The idempotency key was used before with another input.',
  interfaces: [Problem],
  fields: (t) => ({
    existingId: t.exposeID('existingId', { description: 'Of the run or event that the key made.' }),
  }),
});
export const InvalidInputRef = problem<InvalidInput>('InvalidInput').implement({
  description: 'A field of the input is wrong. Nothing was written.',
  interfaces: [Problem],
  fields: (t) => ({
    field: t.exposeString('field', {
      nullable: true,
      description: 'Path of the field, such as steps[0].name.',
    }),
  }),
});
export const NotFoundRef = problem<NotFound>('NotFound').implement({
  description: 'What the input names does not exist.',
  interfaces: [Problem],
});
export const IllegalStateRef = problem<IllegalState>('IllegalState').implement({
  description: 'The status or version of the object does not allow the action.',
  interfaces: [Problem],
  fields: (t) => ({
    status: t.exposeString('status', { description: 'The status or version that it has.' }),
  }),
});
export const ForbiddenRef = problem<Forbidden>('Forbidden').implement({
  description: "The caller's credential lacks a scope.",
  interfaces: [Problem],
  fields: (t) => ({
    scope: t.field({ type: ScopeEnum, description: 'The scope that it needs.', resolve: (p) => p.scope }),
  }),
});
export const UnavailableRef = problem<Unavailable>('Unavailable').implement({
  description: 'Whether it was applied is unknown, or it was not. Repeat it with the same key.',
  interfaces: [Problem],
  fields: (t) => ({
    retryAfterSeconds: t.exposeFloat('retryAfterSeconds', {
      nullable: true,
      description: 'Seconds to wait before.',
    }),
  }),
});
export const LeaseTokenInvalidRef = problem<LeaseTokenInvalid>('LeaseTokenInvalid').implement({
  description: 'The token does not belong to the attempt, or there is no such attempt.',
  interfaces: [Problem],
});
export const ResultConflictRef = problem<ResultConflict>('ResultConflict').implement({
  description: 'This attempt reported something else before. What was stored first stands.',
  interfaces: [Problem],
  fields: (t) => ({
    attempt: t.field({
      type: AttemptRef,
      nullable: true,
      description: 'The attempt with what it reported first. Needs READ.',
      resolve: ({ attemptId }, _, context) => context.loaders.attempt(attemptId),
    }),
  }),
});
