import { type GraphQLInputType, getNamedType, getNullableType, isInputObjectType, isListType } from 'graphql';
import { limits } from '../../../src/domain/limits.ts';
import { bytesOfJson, notStored } from './accepted.ts';
import type { Data } from './answers.ts';
import type { Mutation } from './cases.ts';
import { Members, Raw } from './raw-json.ts';

/** Where a mutation takes JSON: the way to it through its arguments, in which * is an entry of a list. */
export interface JsonPlace {
  name: string;
  /** The type and field of the input that it stands in, which several mutations may take. */
  input: string;
  way: readonly string[];
  maxBytes: number;
}

interface Field {
  name: string;
  type: GraphQLInputType;
}

export const jsonPlaces = ({ name, args }: Mutation): JsonPlace[] => placesIn(name, args, [], []);

function placesIn(
  owner: string,
  fields: readonly Field[],
  way: readonly string[],
  within: readonly string[],
): JsonPlace[] {
  return fields.flatMap(({ name, type }) => {
    if (notStored.has(name)) return [];
    const named = getNamedType(type);
    const here = [...way, name, ...(isListType(getNullableType(type)) ? ['*'] : [])];
    if (named.name === 'JSON') {
      const input = `${owner}.${name}`;
      return [{ name: here.join('.'), input, way: here, maxBytes: bytesOfJson(input) }];
    }
    if (!isInputObjectType(named) || within.includes(named.name)) return [];
    return placesIn(named.name, Object.values(named.getFields()), here, [...within, named.name]);
  });
}

/** The arguments with another value at a place. Null: they do not have the place. */
export function withJson(
  args: Record<string, unknown>,
  { way }: JsonPlace,
  value: unknown,
): Record<string, unknown> | null {
  const copy = structuredClone(args);
  let at: Data = copy;
  for (const step of way.slice(0, -1)) {
    at = step === '*' ? at[0] : at[step];
    if (typeof at !== 'object' || at === null) return null;
  }
  at[way.at(-1) ?? ''] = value;
  return copy;
}

/** JSON that no place takes, and how it is refused. */
export const wrongJson: readonly [string, (place: JsonPlace) => unknown, RegExp][] = [
  ['the key __proto__', () => new Members([['__proto__', 1]]), /has a key __proto__/],
  ['the key constructor', () => ({ inner: [{ constructor: 1 }] }), /has a key constructor/],
  ['the key prototype', () => ({ prototype: {} }), /has a key prototype/],
  [
    'too many levels',
    () => ({ deep: new Raw(`${'['.repeat(limits.jsonDepth)}${']'.repeat(limits.jsonDepth)}`) }),
    /deeper than 64 levels/,
  ],
  [
    'too many values',
    () => ({ many: Array.from({ length: limits.jsonNodes }, () => 1) }),
    /more than 100000 values|\d bytes/,
  ],
  ['too large a number', () => ({ n: new Raw('1e400') }), /not finite/],
  ['too large an integer', () => ({ n: new Raw('9007199254740993') }), /beyond 2\^53/],
];

export const tooManyBytes = ({ maxBytes }: JsonPlace): unknown => ({ text: 'x'.repeat(maxBytes) });
