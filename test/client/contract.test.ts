import { readFileSync } from 'node:fs';
import { type GraphQLEnumType, type GraphQLInputObjectType, parse, validate } from 'graphql';
import { expect, test } from 'vitest';
import { retryableCodes } from '../../src/client/answers.ts';
import { document } from '../../src/client/document.ts';
import type {
  AttemptEvent,
  RunChangeFilter,
  RunStatus,
  TaskChangeFilter,
  TaskStatus,
} from '../../src/client/types.ts';
import { errors } from '../../src/errors.ts';
import { schema } from '../graphql/client.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

test('what it sends is the file that servers with a list of trusted documents know', () => {
  expect(document).toBe(read('schema/operations/client.graphql'));
  expect(validate(schema, parse(document))).toEqual([]);
});

test('filters have the fields of the schema that streams take', () => {
  const task: Record<keyof TaskChangeFilter, true> = {
    ids: true,
    runIds: true,
    statuses: true,
    jobs: true,
    steps: true,
    agents: true,
    queues: true,
    customers: true,
    correlationId: true,
    labels: true,
    anyLabels: true,
    createdAfter: true,
    createdBefore: true,
    not: true,
  };
  const run: Record<keyof RunChangeFilter, true> = {
    ids: true,
    statuses: true,
    jobs: true,
    customers: true,
    idempotencyKeys: true,
    correlationId: true,
    labels: true,
    anyLabels: true,
    createdAfter: true,
    createdBefore: true,
  };
  const fieldsOf = (type: string) =>
    Object.values((schema.getType(type) as GraphQLInputObjectType).getFields())
      .filter(({ description }) => !description?.includes('Not on streams'))
      .map(({ name }) => name)
      .sort();
  expect(Object.keys(task).sort()).toEqual(fieldsOf('TaskFilter'));
  expect(Object.keys(run).sort()).toEqual(fieldsOf('RunFilter'));
});

test('events of attempts have the fields that are asked for, and these are of the schema', () => {
  const event: Record<keyof AttemptEvent, true> = {
    id: true,
    sequence: true,
    attemptId: true,
    taskId: true,
    type: true,
    at: true,
    data: true,
  };
  const asked = /changes: events \{([^}]*)\}/.exec(document)?.[1]?.trim().split(/\s+/);
  expect(asked).toEqual(Object.keys(event));
});

test('statuses are those of the schema', () => {
  const task: Record<TaskStatus, true> = {
    BLOCKED: true,
    ENQUEUED: true,
    PROCESSING: true,
    COMPLETED: true,
    FAILED: true,
    CANCELLED: true,
  };
  const run: Record<RunStatus, true> = {
    QUEUED: true,
    RUNNING: true,
    CANCELLING: true,
    COMPLETED: true,
    FAILED: true,
    CANCELLED: true,
  };
  const valuesOf = (type: string) =>
    (schema.getType(type) as GraphQLEnumType)
      .getValues()
      .map(({ name }) => name)
      .sort();
  expect(Object.keys(task).sort()).toEqual(valuesOf('TaskStatus'));
  expect(Object.keys(run).sort()).toEqual(valuesOf('RunStatus'));
});

test('it tries again what the catalogue of errors calls retryable', () => {
  const retryable = Object.values(errors).filter((error) => error.where === 'graphql' && error.retryable);
  expect([...retryableCodes].sort()).toEqual(retryable.map(({ code }) => code).sort());
});
