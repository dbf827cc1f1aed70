import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { allScopes, type Scope } from '../../src/domain/credential.ts';
import { schema } from './client.ts';
import { type CommandWorld, prepareCommands } from './command-cases.ts';
import { type Known, objectsBelow, selectionsOf, selectionWith } from './walk.ts';
import {
  type Asked,
  ask,
  commands,
  hiddenFrom,
  leaves,
  objectsIn,
  operationOn,
  scopeOf,
  tells,
  tokenWith,
  type Walked,
} from './walked.ts';

// A worker gets its work by WORK alone: this is what it claims the task for.
const ofWork = ['Assignment.checkpoint', 'Assignment.input'];

const given = (command: string, args: string, known: Known): Asked => {
  const field = commands.find(({ name }) => name === command);
  if (!field) throw new Error(`there is no command ${command}`);
  return operationOn('mutation', field, selectionWith(field, args, known, 4));
};

/** Types of what a command answered: each of a list. */
const answered = ({ root, data }: Walked): string[] =>
  [data?.[root]].flat().map((value) => (value as { __typename: string } | null)?.__typename ?? 'nothing');

/** What a caller with these scopes is answered in a world of its own: each command once so that it can succeed. */
interface Story {
  world: CommandWorld;
  succeeding: Walked[];
  refused: Walked[];
  /** The same commands with whatever arguments their types allow. */
  anything: Walked[];
}

async function play(scopes: readonly Scope[]): Promise<Story> {
  const world = await prepareCommands();
  const { plane, known, successes, problems } = world;
  const token = await tokenWith(plane, scopes);
  const refused = await ask(
    plane,
    token,
    Object.values(problems).map(({ command, args }) => given(command, args, known)),
  );
  const succeeding = await ask(
    plane,
    token,
    commands.map(({ name }) => given(name, successes[name] ?? '', known)),
  );
  const everyCommand = commands.flatMap((field) =>
    selectionsOf(field, known, 3).map((selection) => operationOn('mutation', field, selection)),
  );
  return { world, refused, succeeding, anything: await ask(plane, token, everyCommand) };
}

const stories: Story[] = [];
const played = async (scopes: readonly Scope[]): Promise<Story> => {
  const story = await play(scopes);
  stories.push(story);
  return story;
};
afterAll(() => Promise.all(stories.map(({ world }) => world.plane.stop())));

const toldBy = ({ succeeding, refused, anything }: Story): Walked[] => [
  ...refused,
  ...succeeding,
  ...anything,
];

describe('what only PAYLOAD_READ may see of what commands answer', () => {
  let all: Story;
  let without: Story;
  beforeAll(async () => {
    all = await played(allScopes);
    without = await played(allScopes.filter((scope) => scope !== 'PAYLOAD_READ'));
  }, 120_000);

  test('every command is tried so that it succeeds, and every problem so that it is answered', () => {
    for (const story of [all, without]) {
      for (const one of story.succeeding) {
        const expected = one.root === 'extendLeases' ? /^LeaseStatus$/ : /Success$/;
        for (const type of answered(one)) expect(type, one.root).toMatch(expected);
      }
      const names = Object.keys(story.world.problems);
      expect(story.refused.map(answered)).toEqual(names.map((name) => [name]));
    }
  });

  test('commands are walked to every object that only they lead to', () => {
    const ofOthers = objectsBelow(schema.getQueryType(), schema.getSubscriptionType());
    const reached = objectsIn(leaves(toldBy(all)));
    const notReached = [...objectsBelow(schema.getMutationType())].filter(
      (name) => !ofOthers.has(name) && !reached.has(name),
    );
    // They have no payload: whoever has every scope is not refused, and the database answers.
    expect(notReached.sort()).toEqual(['Forbidden', 'Unavailable']);
  });

  test('is seen with it, and null without it at each place where it stands', () => {
    const isPayload = (walked: readonly Walked[]) =>
      leaves(walked).filter(({ field, value }) => tells(value) && !ofWork.includes(field));
    const places = isPayload([...all.refused, ...all.succeeding]);
    expect([...new Set(places.map(({ field }) => field))].sort()).toEqual([
      'Event.payload',
      'ExecutionError.message',
      'Materialization.metadata',
      'Run.config',
      'Task.input',
      'Task.output',
    ]);
    const hidden = new Map(
      leaves([...without.refused, ...without.succeeding]).map(({ path, value }) => [path, value]),
    );
    expect(places.filter(({ path }) => hidden.get(path) !== null)).toEqual([]);
    expect(isPayload(toldBy(without))).toEqual([]);
    expect(toldBy(without).flatMap(({ errors }) => errors)).toEqual([]);
  });

  test('is seen by a worker where it claimed the task for it', () => {
    const seen = leaves(without.succeeding).filter(
      ({ field, value }) => field.startsWith('Assignment.') && tells(value),
    );
    expect(seen.map(({ field }) => field).sort()).toEqual(ofWork);
  });
});

describe.each(allScopes)('a token with %s alone', (scope) => {
  let story: Story;
  beforeAll(async () => {
    story = await played([scope]);
  }, 120_000);

  test('carries out every command that needs this scope or a lease token, and is refused all others', () => {
    for (const one of story.succeeding) {
      const field = commands.find(({ name }) => name === one.root);
      const needed = field ? scopeOf(field) : null;
      const types = answered(one);
      if (needed !== null && needed !== scope)
        expect({ [one.root]: types }).toEqual({ [one.root]: ['Forbidden'] });
      else if (one.root === 'extendLeases') expect(types).toEqual(['LeaseStatus']);
      else expect({ [one.root]: types }).toEqual({ [one.root]: [expect.stringMatching(/Success$/)] });
    }
  });

  test('gets no payload, no object that needs READ, and no error', () => {
    const walked = toldBy(story);
    const told = leaves(walked);
    expect(told.filter(({ field, value }) => tells(value) && !ofWork.includes(field))).toEqual([]);
    expect(hiddenFrom(scope, told)).toEqual([]);
    // What committed is answered: no command is an error for want of a scope.
    expect(walked.flatMap(({ errors }) => errors)).toEqual([]);
  });
});
