import { inNfc } from '../domain/text.ts';
import type { DeadLetterFilter } from '../read/dead-letters.ts';
import type { RunFilter } from '../read/run-filter.ts';
import type { TaskFilter } from '../read/task-filter.ts';
import { builder } from './builder.ts';
import { RunStatusEnum, TaskStatusEnum, WaitingReasonEnum } from './enums.ts';
import { badUserInput } from './errors.ts';
import { toUuids } from './public-ids.ts';

const LabelFilterInput = builder.inputType('LabelFilter', {
  description: 'Objects that carry a label.',
  fields: (t) => ({
    key: t.string({ required: true, description: 'The key of the label.' }),
    values: t.stringList({ description: 'Values that it may have; absent is any.' }),
  }),
});

const meaning =
  'Fields are AND, entries of a list OR. Null is absent; an empty list matches nothing. Names, keys and labels match exactly, as Unicode NFC.';

export const TaskFilterInput = builder.inputRef<TaskFilter>('TaskFilter').implement({
  description: `Which tasks. ${meaning}`,
  fields: (t) => ({
    ids: t.idList({ description: 'Ids of tasks, task_….' }),
    runIds: t.idList({
      description: 'Ids of runs, run_…. A stream that names runs completes when all are terminal.',
    }),
    statuses: t.field({
      type: [TaskStatusEnum],
      description: 'Statuses; on a stream those that a change leads to.',
    }),
    waitingReasons: t.field({
      type: [WaitingReasonEnum],
      description:
        'Why they wait now, as Task.waiting tells it; a task that does not wait has no reason. Not on streams.',
    }),
    jobs: t.stringList({ description: 'Names of jobs.' }),
    steps: t.stringList({ description: 'Names of steps.' }),
    agents: t.stringList({ description: 'Names of agents.' }),
    queues: t.stringList({ description: 'Names of queues.' }),
    customers: t.stringList({ description: "The runs' customers." }),
    labels: t.field({ type: [LabelFilterInput], description: "All of these labels, the run's or its own." }),
    anyLabels: t.field({
      type: [LabelFilterInput],
      description: "At least one of these labels, the run's or its own.",
    }),
    correlationId: t.string({ description: "The run's correlation id." }),
    errorCodes: t.stringList({ description: 'Codes of the error that ended the task. Not on streams.' }),
    createdAfter: t.field({
      type: 'DateTime',
      description: 'Created at this time or later.',
    }),
    createdBefore: t.field({ type: 'DateTime', description: 'Created before this time.' }),
    finishedAfter: t.field({
      type: 'DateTime',
      description: 'Finished at this time or later. Not on streams.',
    }),
    finishedBefore: t.field({ type: 'DateTime', description: 'Finished before this time. Not on streams.' }),
    not: t.field({
      type: TaskFilterInput,
      description: 'Tasks that this filter matches are left out. One level.',
    }),
  }),
});

export const RunFilterInput = builder.inputRef<RunFilter>('RunFilter').implement({
  description: `Which runs. ${meaning}`,
  fields: (t) => ({
    ids: t.idList({
      description: 'Ids of runs, run_…. A stream that names runs completes when all are terminal.',
    }),
    idempotencyKeys: t.stringList({ description: 'Idempotency keys of the launches.' }),
    statuses: t.field({
      type: [RunStatusEnum],
      description: 'Statuses; on a stream those that a change leads to.',
    }),
    jobs: t.stringList({ description: 'Names of jobs.' }),
    customers: t.stringList({ description: 'Customers.' }),
    labels: t.field({ type: [LabelFilterInput], description: 'All of these labels.' }),
    anyLabels: t.field({ type: [LabelFilterInput], description: 'At least one of these labels.' }),
    correlationId: t.string({ description: 'The correlation id.' }),
    createdAfter: t.field({
      type: 'DateTime',
      description: 'Created at this time or later.',
    }),
    createdBefore: t.field({ type: 'DateTime', description: 'Created before this time.' }),
    finishedAfter: t.field({
      type: 'DateTime',
      description: 'Finished at this time or later. Not on streams.',
    }),
    finishedBefore: t.field({ type: 'DateTime', description: 'Finished before this time. Not on streams.' }),
  }),
});

export const DeadLetterFilterInput = builder.inputType('DeadLetterFilter', {
  description: `Which dead letters. ${meaning}`,
  fields: (t) => ({
    ids: t.idList({ description: 'Ids of dead letters, dlq_….' }),
    jobs: t.stringList({ description: 'Names of jobs.' }),
    queues: t.stringList({ description: 'Names of queues.' }),
    agents: t.stringList({ description: 'Names of agents.' }),
    scopes: t.stringList({ description: 'Scopes: knowledge_base, knowledge, tenant or unknown.' }),
    scopeIds: t.stringList({ description: 'What the failure concerns, within its scope.' }),
    errorCodes: t.stringList({ description: 'Codes of the last error.' }),
    replayed: t.boolean({ description: 'Only those that were replayed, or only those that were not.' }),
    failedAfter: t.field({ type: 'DateTime', description: 'Failed at this time or later.' }),
    failedBefore: t.field({ type: 'DateTime', description: 'Failed before this time.' }),
  }),
});

/** A filter with UUIDs in place of public ids. */
export function toTaskFilter(filter: TaskFilter | null | undefined, field = 'filter'): TaskFilter {
  if (!filter) return {};
  const { not } = filter;
  if (not?.not) throw badUserInput(`${field}.not.not`, 'not has one level: it cannot have a not of its own.');
  return {
    ...inNfc(filter),
    ids: toUuids('task', filter.ids, `${field}.ids`),
    runIds: toUuids('run', filter.runIds, `${field}.runIds`),
    not: not ? toTaskFilter(not, `${field}.not`) : null,
  };
}

export const toRunFilter = (filter: RunFilter | null | undefined): RunFilter =>
  filter ? { ...inNfc(filter), ids: toUuids('run', filter.ids, 'filter.ids') } : {};

export const toDeadLetterFilter = (
  filter: typeof DeadLetterFilterInput.$inferInput | null | undefined,
): DeadLetterFilter => (filter ? { ...inNfc(filter), ids: toUuids('dlq', filter.ids, 'filter.ids') } : {});
