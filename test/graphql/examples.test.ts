import { readdirSync, readFileSync } from 'node:fs';
import {
  type DocumentNode,
  type GraphQLObjectType,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  parse,
  print,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { toPublicId } from '../../src/domain/ids.ts';
import { isExample } from '../../src/http/graphiql.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { type Answer, Client, schema } from './client.ts';

const folder = new URL('../../schema/operations/', import.meta.url);
const documents = new Map(
  readdirSync(folder)
    .filter(isExample)
    .sort()
    .map((file) => [file, parse(readFileSync(new URL(file, folder), 'utf8'))]),
);
const operationsOf = (document: DocumentNode | undefined): OperationDefinitionNode[] =>
  document?.definitions.filter((each) => each.kind === Kind.OPERATION_DEFINITION) ?? [];
const nameOf = ({ name }: OperationDefinitionNode): string => name?.value ?? '';

/** Fields of a root type that no example asks for. */
function unused(root: GraphQLObjectType | null | undefined): string[] {
  const fields = new Set(Object.keys(root?.getFields() ?? {}));
  const types = new TypeInfo(schema);
  for (const document of documents.values()) {
    visit(
      document,
      visitWithTypeInfo(types, {
        Field: (field) => {
          if (types.getParentType() === root) fields.delete(field.name.value);
        },
      }),
    );
  }
  return [...fields];
}

test('the examples show every question, every command and every stream', () => {
  expect(unused(schema.getQueryType())).toEqual([]);
  expect(unused(schema.getMutationType())).toEqual([]);
  expect(unused(schema.getSubscriptionType())).toEqual([]);
});

describe('in an order in which each has what it needs', () => {
  let plane: ControlPlane;
  beforeAll(async () => {
    plane = await ControlPlane.start();
    await plane.agent('flaky');
    await plane.job('flaky', ['flaky']);
  });
  afterAll(() => plane.stop());

  const later = new Date(Date.UTC(2999, 0));
  const answers = new Map<string, Answer>();
  /** A task of its own, with its run. */
  const launched = async (input: object = {}) => {
    const run = await plane.launch('flaky', input);
    const [row] = await plane.rows<{ id: string }>('select id from runplane.tasks where run_id = $1', [run]);
    return { run: toPublicId('run', run), task: toPublicId('task', row?.id ?? '') };
  };
  const waiting = () => launched({ availableAt: later });
  const failed = async () => {
    const { run, task } = await launched();
    for (const assignment of await plane.claim(['flaky']))
      await plane.report(assignment, {
        status: 'FAILED',
        error: { code: 'BROKEN', message: 'cannot', kind: 'PERMANENT' },
      });
    const { deadLetter } = (
      await new Client(plane).query(`{ task(id: "${task}") { deadLetter { id } attempts { nodes { id } } } }`)
    ).task;
    return { run, task, letter: deadLetter.id as string };
  };
  const lease = async () => {
    await plane.launch('greet', { config: { who: 'world' } });
    const [assignment] = await plane.claim(['greeter'], 1);
    if (!assignment) throw new Error('nothing to claim');
    return plane.credentials(assignment);
  };
  const one = async (list: string): Promise<string> =>
    (await new Client(plane).query(`{ trace: ${list}(first: 1) { nodes { id } } }`)).trace.nodes[0].id;

  /** What an example needs to be told. */
  const variables: Record<string, () => Promise<object>> = {
    DeleteRoute: async () => {
      await new Client(plane).query(
        'mutation { saveRoute(input: { name: "gone", topic: "gone", job: "greet" }) { __typename } }',
      );
      return { name: 'gone' };
    },
    RevokeToken: async () => ({ id: answers.get('CreateToken').createApiToken.token.id }),
    LaunchMany: async () => ({ inputs: [{ job: 'greet', config: { who: 'many' } }] }),
    PublishMany: async () => ({ inputs: [{ topic: 'greetings.many', payload: { who: 'many' } }] }),
    ReplayEvent: async () => ({ id: answers.get('Publish').publishEvent.eventId }),
    RerunWhatFailed: async () => ({ runId: (await failed()).run }),
    Extend: lease,
    TellProgress: lease,
    Report: lease,
    ReportRateLimit: lease,
    ReportAndSpawn: lease,
    ReportMany: async () => ({ results: [{ ...(await lease()), status: 'COMPLETED' }] }),
    OneRun: async () => ({ id: await one('runs') }),
    OneTask: async () => ({ id: await one('tasks') }),
    OneAttempt: async () => {
      const { task } = await failed();
      const data = await new Client(plane).query(`{ task(id: "${task}") { attempts { nodes { id } } } }`);
      return { id: data.task.attempts.nodes[0].id };
    },
    Anything: async () => ({ id: await one('events') }),
    OneEvent: async () => ({ id: await one('events') }),
    Trace: async () => ({ correlationId: 'any' }),
    NextTaskChanges: async () => {
      const { changeLogCursor } = await new Client(plane).query('{ changeLogCursor }');
      await launched();
      return { after: changeLogCursor };
    },
    WatchOneRun: async () => ({ id: (await failed()).run }),
    WatchAttempts: async () => ({ runId: (await failed()).run }),
    CancelRun: async () => ({ runId: (await waiting()).run }),
    CancelTask: async () => ({ taskId: (await waiting()).task }),
    CancelRunsOfCustomer: async () => ({ customer: 'acme' }),
    RunTaskNow: async () => ({ taskId: (await waiting()).task }),
    Hurry: async () => ({ taskId: (await waiting()).task }),
    RetryTask: async () => ({ taskId: (await failed()).task }),
    RetryWhatFailed: async () => ({ errorCode: 'BROKEN' }),
    DeleteTask: async () => ({ taskId: (await failed()).task }),
    ReplayDeadLetter: async () => ({ id: (await failed()).letter }),
    PurgeOldDeadLetters: async () => ({ before: '2999-01-01T00:00:00Z' }),
  };

  async function execute(operation: OperationDefinitionNode): Promise<Answer> {
    const given = await variables[nameOf(operation)]?.();
    const client = new Client(plane);
    const source = print(operation);
    if (operation.operation !== OperationTypeNode.SUBSCRIPTION) return client.query(source, { ...given });
    const stream = await client.subscribe(source, { ...given });
    if (!(Symbol.asyncIterator in stream)) throw new Error(JSON.stringify(stream.errors));
    const { value } = await stream.next();
    await stream.return?.(undefined);
    if (value?.errors) throw new Error(JSON.stringify(value.errors));
    return value?.data;
  }

  const order = [
    'configure',
    'tokens',
    'launch',
    'work',
    'look',
    'trace',
    'capacity',
    'watch',
    'operate',
  ].map((name) => `example-${name}.graphql`);
  test('all of them are tried', () => expect([...order].sort()).toEqual([...documents.keys()]));

  const operations = order.flatMap((file) => operationsOf(documents.get(file)));
  test.each(operations.map((operation) => ({ name: nameOf(operation), operation })))(
    '$name is answered',
    async ({ name, operation }) => {
      const answer = await execute(operation);
      answers.set(name, answer);
      for (const told of Object.values(answer).flat() as Answer[]) {
        // A command that was refused, or a name that is not there.
        expect(told).not.toBeNull();
        if (operation.operation === OperationTypeNode.MUTATION && told.__typename)
          expect(told.__typename).toMatch(/Success$/);
      }
    },
  );

  test('what was published launches what was configured', () => {
    const { publishEvent } = answers.get('Publish');
    const { publishEvents } = answers.get('PublishMany');
    for (const { runIds } of [publishEvent, ...publishEvents]) expect(runIds).toHaveLength(1);
  });

  test('what was published is found by its topic', () => {
    expect(answers.get('Events').events.nodes).not.toEqual([]);
  });

  test('a template in a string shows how to write one without a variable', () => {
    expect(answers.get('WhatWouldBeLaunched').previewRoutes).toEqual([
      { route: 'greetings', job: 'greet', config: { who: 'world' }, problem: null },
    ]);
  });
});
