import {
  type GraphQLInputType,
  GraphQLObjectType,
  type GraphQLOutputType,
  getNamedType,
  getNullableType,
  isCompositeType,
  isEnumType,
  isInputObjectType,
  isListType,
  isObjectType,
  isRequiredInputField,
  isScalarType,
  isUnionType,
} from 'graphql';
import { expect } from 'vitest';
import { repairText } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import { cutBytes } from '../../../src/domain/text.ts';
import { schema } from '../../graphql/client.ts';
import type { Data } from './answers.ts';

/** Arguments of a mutation, or fields of an input. */
export type Sent = readonly { name: string; type: GraphQLInputType }[];

/** How a value that was sent is found again: what is selected, and whether that is it. */
interface Pair {
  selection: string;
  isEqual(sent: Data, stored: Data): boolean;
}

/** How the fields of an input are found in an object, wherever both have a field of one name. Null: they share none. */
export function pairOf(fields: Sent, type: GraphQLObjectType): Pair | null {
  const pairs = fields.flatMap((field) => {
    const pair = fieldPair(field.name, field.type, type);
    return pair ? [{ name: field.name, pair }] : [];
  });
  if (pairs.length === 0) return null;
  return {
    selection: pairs.map(({ name, pair }) => `${name}: ${pair.selection}`).join(' '),
    isEqual: (sent, stored) =>
      pairs.every(({ name, pair }) => sent[name] == null || pair.isEqual(sent[name], stored?.[name] ?? null)),
  };
}

/** The names of what was sent and is not there. */
export function differences(fields: Sent, type: GraphQLObjectType, sent: Data, stored: Data): string[] {
  return fields
    .filter(({ name, type: given }) => {
      const pair = fieldPair(name, given, type);
      return pair && sent[name] != null && !pair.isEqual(sent[name], stored?.[name] ?? null);
    })
    .map(
      ({ name }) =>
        `${type.name}.${name} was sent as ${JSON.stringify(sent[name])} and is ${JSON.stringify(stored?.[name])}`,
    );
}

function fieldPair(name: string, input: GraphQLInputType, type: GraphQLObjectType): Pair | null {
  const field = type.getFields()[name];
  if (!field) return name.endsWith('Key') ? keyPair(name, input, type) : null;
  const isConnection = getNamedType(field.type).name.endsWith('Connection');
  if (
    field.args.some(
      ({ defaultValue, name: argument }) =>
        defaultValue === undefined && argument !== 'first' && !isConnection,
    )
  )
    return null;
  const value = valuePair(getNullableType(input), getNullableType(field.type));
  return (
    value && {
      ...value,
      selection: `${name}${isConnection ? `(first: ${limits.page})` : ''} ${value.selection}`,
    }
  );
}

/** A key is what an object of its own has. */
function keyPair(name: string, input: GraphQLInputType, type: GraphQLObjectType): Pair | null {
  const field = type.getFields()[name.slice(0, -'Key'.length)];
  const object = field && getNullableType(field.type);
  if (!isObjectType(object) || !object.getFields().key || !isScalarType(getNullableType(input))) return null;
  return {
    selection: `${field?.name} { key }`,
    isEqual: (sent, stored) => isSame('String', sent, stored?.key),
  };
}

function valuePair(input: GraphQLInputType, output: GraphQLOutputType): Pair | null {
  const [given, kept] = [getNamedType(input), getNamedType(output)];
  if (isListType(input) !== isListType(output) && !kept.name.endsWith('Connection')) return null;
  if (isListType(input)) return listPair(getNamedType(input), kept);
  if (isInputObjectType(given)) {
    const inner = Object.values(given.getFields());
    if (given.isOneOf && isUnionType(kept)) return oneOfPair(inner, kept.getTypes());
    const pair = isObjectType(kept) ? pairOf(inner, kept) : null;
    return pair && { ...pair, selection: `{ ${pair.selection} }` };
  }
  if (isObjectType(kept) && kept.getFields().name && given.name === 'String') {
    return { selection: '{ name }', isEqual: (sent, stored) => isSame('String', sent, stored?.name) };
  }
  if (isCompositeType(kept) || (isEnumType(given) && given !== kept)) return null;
  return { selection: '', isEqual: (sent, stored) => isSame(given.name, sent, stored) };
}

/** Each entry that was sent is among those that are there: in their order or sorted, with others or without. */
function listPair(input: GraphQLInputType, output: GraphQLOutputType): Pair | null {
  const nodes = isObjectType(output) ? output.getFields().nodes : undefined;
  const entryType = nodes ? getNamedType(nodes.type) : output;
  const pair = valuePair(input, entryType);
  // Lists of objects are of the same things when they share what makes an entry one.
  if (isInputObjectType(input) && isObjectType(entryType)) {
    const identity = Object.values(input.getFields()).filter(isRequiredInputField);
    if (!identity.some(({ name, type }) => fieldPair(name, type, entryType))) return null;
  }
  return (
    pair && {
      selection: nodes ? `{ nodes ${pair.selection} }` : pair.selection,
      isEqual: (sent, stored) => {
        const entries: Data[] = (nodes ? stored?.nodes : stored) ?? [];
        const all: Data[] = Array.isArray(sent) ? sent : [sent];
        return all.every((entry) => entries.some((one) => pair.isEqual(entry, one)));
      },
    }
  );
}

/** A member of a union is called as the field of the input that makes it. */
function oneOfPair(fields: Sent, members: readonly GraphQLObjectType[]): Pair {
  const memberOf = (name: string) =>
    members.find((member) => member.name.toLowerCase().startsWith(name.toLowerCase()));
  const parts = fields.flatMap(({ name, type }) => {
    const [member, given] = [memberOf(name), getNamedType(type)];
    const pair = member && isInputObjectType(given) ? pairOf(Object.values(given.getFields()), member) : null;
    return member && pair ? [{ name, member, pair }] : [];
  });
  return {
    selection: `{ __typename ${parts.map(({ member, pair }) => `... on ${member.name} { ${pair.selection} }`).join(' ')} }`,
    isEqual: (sent, stored) =>
      parts.every(
        ({ name, member, pair }) =>
          sent[name] == null || (stored?.__typename === member.name && pair.isEqual(sent[name], stored)),
      ),
  };
}

/** What is stored of a scalar: names in NFC, text of models repaired, messages cut, times in UTC, decimals without zeros. */
function isSame(scalar: string, sent: Data, stored: Data): boolean {
  switch (scalar) {
    case 'ID':
    case 'String': {
      const text = String(sent);
      const repaired = cutBytes(repairText(text), limits.errorMessageBytes);
      return [text, text.normalize('NFC'), repaired].includes(stored);
    }
    case 'DateTime':
      return new Date(sent).getTime() === new Date(stored).getTime();
    case 'Decimal':
      return (
        stored ===
        sent
          .replace(/^0+(?=\d)/, '')
          .replace(/(\.\d*?)0+$/, '$1')
          .replace(/\.$/, '')
      );
    case 'JSON':
      return isEqualJson(repaired(sent), stored);
    default:
      return sent === stored || Object.is(sent, -0);
  }
}

function repaired(value: Data): Data {
  if (typeof value === 'string') return repairText(value);
  if (Array.isArray(value)) return value.map(repaired);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [repairText(key), repaired(entry)]));
}

function isEqualJson(one: Data, other: Data): boolean {
  try {
    expect(JSON.parse(JSON.stringify(one))).toEqual(other);
    return true;
  } catch {
    return false;
  }
}

/** A type of objects that have an identity. */
export function nodeType(type: GraphQLOutputType): GraphQLObjectType | null {
  const named = getNullableType(type);
  const isNode =
    named instanceof GraphQLObjectType && named.getInterfaces().some(({ name }) => name === 'Node');
  return isNode ? (schema.getType(named.name) as GraphQLObjectType) : null;
}
