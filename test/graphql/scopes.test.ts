import { type DocumentNode, type GraphQLField, type GraphQLObjectType, isObjectType, parse } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Authority, allScopes, type Scope } from '../../src/domain/credential.ts';
import { scopeOfRoot, scopeOfType } from '../../src/graphql/guards.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { Client, schema } from './client.ts';
import { fillWithPayloads, marker } from './payloads.ts';
import { type Known, type Leaf, leavesOf, selectionsOf } from './walk.ts';

// A worker gets its work by WORK alone: this is what it claims the task for.
const ofWork = new Set(['Assignment.input', 'Assignment.checkpoint']);

let plane: ControlPlane;
let known: Known;
let beginning: string;
let everyQuestion: Asked[];
let everyCommand: Asked[];
beforeAll(async () => {
  plane = await ControlPlane.start({ authentication: { adminToken: null, external: null } });
  beginning = await plane.services.changeLog.currentCursor();
  known = await fillWithPayloads(plane);
  // Each kind of object is reached by its id, so that what lies below it is reached in fewer steps from there.
  everyQuestion = operationsOn('query', questions, ({ name }) => (name === 'node' ? 3 : 4));
  everyCommand = operationsOn('mutation', commands, () => 3);
});
afterAll(() => plane.stop());

type Root = GraphQLField<unknown, unknown>;
const fieldsOf = (type: GraphQLObjectType | null | undefined): Root[] =>
  Object.values(type?.getFields() ?? {}) as Root[];
const questions = fieldsOf(schema.getQueryType());
const commands = fieldsOf(schema.getMutationType());
const streams = fieldsOf(schema.getSubscriptionType());

/** Somebody with these scopes, or with a token. */
type Caller = readonly Scope[] | Authority;

interface Walked {
  root: string;
  data: Record<string, unknown> | null;
  errors: readonly { message: string; extensions?: Record<string, unknown> }[];
}

interface Asked {
  root: string;
  document: DocumentNode;
}

/** Operations with everything below these fields. They are valid by their making, and parsed once for all callers. */
const operationsOn = (operation: string, fields: readonly Root[], depth: (field: Root) => number): Asked[] =>
  fields.flatMap((field) =>
    selectionsOf(field, known, depth(field)).map((selection) => ({
      root: field.name,
      document: parse(`${operation} { ${selection} }`, { noLocation: true }),
    })),
  );

async function ask(as: Caller, operations: readonly Asked[]): Promise<Walked[]> {
  const walked: Walked[] = [];
  for (const { root, document } of operations) {
    const { data, errors = [] } = await new Client(plane, as).executeValid(document);
    walked.push({ root, data: data ?? null, errors });
  }
  return walked;
}

const askEverything = (as: Caller): Promise<Walked[]> => ask(as, everyQuestion);

/** Every stream, with all that happened so far. */
async function watchEverything(as: Caller): Promise<Walked[]> {
  const walked: Walked[] = [];
  for (const field of streams) {
    for (const selection of selectionsOf(field, known, 4)) {
      walked.push(...(await watch(as, field, selection)));
    }
  }
  return walked;
}

async function watch(as: Caller, { name }: Root, selection: string): Promise<Walked[]> {
  const stream = await new Client(plane, as).subscribe(`subscription { ${selection} }`, {}, beginning);
  if (!(Symbol.asyncIterator in stream)) return [{ root: name, data: null, errors: stream.errors ?? [] }];
  const walked: Walked[] = [];
  for (let caughtUp = false; !caughtUp; ) {
    const { done, value } = await stream.next();
    if (done) break;
    const { data = null, errors = [] } = value as {
      data?: Record<string, unknown> | null;
      errors?: Walked['errors'];
    };
    walked.push({ root: name, data, errors });
    const [message] = Object.values(data ?? {}) as Record<string, unknown>[];
    caughtUp = !message || message[`${String(message.__typename)}_caughtUp_0`] !== false;
  }
  await stream.return?.(undefined);
  return walked;
}

const leaves = (walked: readonly Walked[]): Leaf[] =>
  walked.flatMap(({ data, root }, i) => leavesOf({ __typename: root, ...data }, `${i}`));
const tells = (value: unknown): boolean => JSON.stringify(value ?? null).includes(marker);

/** What is told of objects that a caller with this scope alone may not see. */
const hiddenFrom = (scope: Scope, told: readonly Leaf[]): Leaf[] =>
  told.filter(({ field }) => {
    const type = schema.getType(field.split('.')[0] ?? '');
    const needed = type ? scopeOfType(type) : null;
    return needed !== null && needed !== scope;
  });

let everything: Leaf[];
beforeAll(async () => {
  everything = leaves([...(await askEverything(allScopes)), ...(await watchEverything(allScopes))]);
}, 60_000);

describe('what only PAYLOAD_READ may see', () => {
  test('is seen with it, in every object that has an id', () => {
    const seen = new Set(everything.filter(({ value }) => tells(value)).map(({ field }) => field));
    expect([...seen].sort()).toEqual(
      expect.arrayContaining([
        'AttemptEvent.data',
        'AuditEntry.after',
        'AuditEntry.before',
        'Event.payload',
        'ExecutionError.message',
        'Materialization.metadata',
        'Run.config',
        'Task.input',
        'Task.output',
      ]),
    );
    const walked = new Set(everything.map(({ field }) => field.split('.')[0]));
    const nodes = Object.values(schema.getTypeMap()).filter(
      (type) => isObjectType(type) && type.getInterfaces().some(({ name }) => name === 'Node'),
    );
    expect(nodes.map(({ name }) => name).filter((name) => !walked.has(name))).toEqual([]);
  });

  test('is null without it, at each place where it stands, and in no error', async () => {
    const others = allScopes.filter((scope) => scope !== 'PAYLOAD_READ');
    const walked = [...(await askEverything(others)), ...(await watchEverything(others))];
    const errors = walked.flatMap((one) => one.errors);
    expect(errors.filter(tells)).toEqual([]);
    const without = new Map(leaves(walked).map(({ path, value }) => [path, value]));
    const places = everything.filter(({ value }) => tells(value));
    expect(places.length).toBeGreaterThan(100);
    expect(places.filter(({ path }) => without.get(path) !== null)).toEqual([]);
    expect([...without].filter(([, value]) => tells(value))).toEqual([]);
  }, 60_000);
});

async function tokenWith(scope: Scope): Promise<Authority> {
  const { apiTokens, credentials } = plane.services;
  const created = await apiTokens.create({ name: scope, scopes: [scope] }, actor);
  const authority = 'secret' in created ? await credentials.ofToken(created.secret) : null;
  if (!authority) throw new Error(`no token with ${scope}`);
  return authority;
}

describe.each(allScopes)('a token with %s alone', (scope) => {
  let token: Authority;
  beforeAll(async () => {
    token = await tokenWith(scope);
  });

  test('gets from questions and streams what needs that scope, an error for all else, and no payload', async () => {
    const walked = [...(await askEverything(token)), ...(await watchEverything(token))];
    expect(walked.filter(tells)).toEqual([]);
    expect(hiddenFrom(scope, leaves(walked))).toEqual([]);
    for (const { root, data, errors } of walked) {
      const field = [...questions, ...streams].find(({ name }) => name === root);
      const needed = field && scopeOfRoot(field);
      if (needed === null || needed === scope) continue;
      expect({ root, told: Object.values(data ?? {}).filter((value) => value !== null) }).toEqual({
        root,
        told: [],
      });
      expect(errors.map(({ extensions }) => extensions)).toEqual([{ code: 'FORBIDDEN', scope: needed }]);
    }
  }, 60_000);

  test('gets from commands what they did, or a refusal, and no payload', async () => {
    const walked = await ask(token, everyCommand);
    expect(walked.flatMap(({ errors }) => errors).filter(tells)).toEqual([]);
    const told = leaves(walked).filter(({ field, value }) => tells(value) && !ofWork.has(field));
    expect(told).toEqual([]);
    expect(hiddenFrom(scope, leaves(walked))).toEqual([]);
    // What committed is answered: no command is an error for want of a scope.
    const failed = walked.filter(({ errors }) =>
      errors.some(({ extensions }) => extensions?.code === 'FORBIDDEN'),
    );
    expect(failed).toEqual([]);
  }, 60_000);
});
