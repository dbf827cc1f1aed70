import { getNamedType, isObjectType } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Authority, allScopes, type Scope } from '../../src/domain/credential.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { Client, schema } from './client.ts';
import { fillWithPayloads } from './payloads.ts';
import { type Known, type Leaf, objectsBelow, selectionsOf, selectionWith } from './walk.ts';
import {
  type Asked,
  ask,
  type Caller,
  hiddenFrom,
  leaves,
  objectsIn,
  operationOn,
  questions,
  type Root,
  scopeOf,
  streams,
  tells,
  tokenWith,
  type Walked,
} from './walked.ts';

// Nothing describes assets so far.
const neverThere = ['Asset.description'];

/** What a token with one scope alone is told of, beside what everybody is. */
const ofEverybody = ['ServerInfo', 'ServerLimit', 'Viewer'];
const onlyFor: Partial<Record<Scope, string[]>> = {
  WORK: ['WorkAvailable'],
  CONFIGURE: ['Label', 'RoutePreview'],
  ADMIN: ['ApiToken', 'ApiTokenConnection', 'ApiTokenEdge', 'PageInfo'],
};

let plane: ControlPlane;
let known: Known;
let beginning: string;
let everyQuestion: Asked[];
let everything: Leaf[];
beforeAll(async () => {
  plane = await ControlPlane.start({ authentication: { adminToken: null, external: null } });
  beginning = await plane.services.changeLog.currentCursor();
  known = await fillWithPayloads(plane);
  // Each kind of object is reached by its id, so that what lies below it is reached in fewer steps from there.
  everyQuestion = questions.flatMap((field) =>
    selectionsOf(field, known, field.name === 'node' ? 3 : 4).map((selection) =>
      operationOn('query', field, selection),
    ),
  );
  everything = leaves([...(await askEverything(allScopes)), ...(await watchEverything(allScopes))]);
}, 60_000);
afterAll(() => plane.stop());

const askEverything = (as: Caller): Promise<Walked[]> => ask(plane, as, everyQuestion);

/** Every stream, with all that happened so far. */
async function watchEverything(as: Caller): Promise<Walked[]> {
  const walked: Walked[] = [];
  for (const field of streams) {
    // It needs one of its arguments, though none is required.
    const selections =
      field.name === 'workAvailable'
        ? [selectionWith(field, 'agents: ["agent"]', known, 4)]
        : selectionsOf(field, known, 4);
    for (const selection of selections) {
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

test('questions and streams are walked to every object that the schema leads to', () => {
  const there = [...objectsBelow(schema.getQueryType(), schema.getSubscriptionType())];
  const reached = objectsIn(everything);
  expect(there.filter((name) => !reached.has(name))).toEqual([]);
});

test('each question and stream names the scope that it needs, but those about the server and the caller', () => {
  const free = [...questions, ...streams].filter((field) => scopeOf(field) === null);
  expect(free.map(({ name }) => name)).toEqual(['server', 'viewer']);
});

test('each text and JSON that an object has is told somewhere, so that nobody can forget to hide one', () => {
  const told = new Set(everything.filter(({ value }) => value !== null).map(({ field }) => field));
  const there = [...objectsIn(everything)].flatMap((name) => {
    const type = schema.getType(name);
    return isObjectType(type) ? Object.values(type.getFields()).map((field) => ({ name, field })) : [];
  });
  const texts = there.filter(({ field }) => ['String', 'JSON'].includes(getNamedType(field.type).name));
  expect(texts.map(({ name, field }) => `${name}.${field.name}`).filter((field) => !told.has(field))).toEqual(
    neverThere,
  );
});

describe('what only PAYLOAD_READ may see', () => {
  test('is seen with it, wherever the schema has it', () => {
    const seen = new Set(everything.filter(({ value }) => tells(value)).map(({ field }) => field));
    expect([...seen].sort()).toEqual([
      'AttemptEvent.data',
      'AuditEntry.after',
      'AuditEntry.before',
      'Event.payload',
      'EventRejection.message',
      'EventRejection.raw',
      'ExecutionError.message',
      'KnowledgeRecord.data',
      'Materialization.metadata',
      'Run.config',
      'Task.input',
      'Task.output',
    ]);
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

describe.each(allScopes)('a token with %s alone', (scope) => {
  let token: Authority;
  let walked: Walked[];
  beforeAll(async () => {
    token = await tokenWith(plane, [scope]);
    walked = [...(await askEverything(token)), ...(await watchEverything(token))];
  }, 60_000);

  test('gets what needs that scope, an error for all else, and no payload', () => {
    expect(walked.filter(tells)).toEqual([]);
    expect(hiddenFrom(scope, leaves(walked))).toEqual([]);
    for (const { root, data, errors } of walked) {
      const field = [...questions, ...streams].find(({ name }) => name === root);
      const needed = field ? scopeOf(field) : null;
      if (needed === null || needed === scope) continue;
      expect({ root, told: Object.values(data ?? {}).filter((value) => value !== null) }).toEqual({
        root,
        told: [],
      });
      expect(errors.map(({ extensions }) => extensions)).toEqual([{ code: 'FORBIDDEN', scope: needed }]);
    }
  });

  test('reaches every object that needs that scope, or none', () => {
    const ofOthers = Object.values(onlyFor).flat();
    const ofReaders = [...objectsIn(everything)].filter(
      (name) => ['Label', 'PageInfo'].includes(name) || !ofOthers.includes(name),
    );
    const expected = scope === 'READ' ? ofReaders : [...ofEverybody, ...(onlyFor[scope] ?? [])];
    expect([...objectsIn(leaves(walked))].sort()).toEqual(expected.sort());
  });
});
