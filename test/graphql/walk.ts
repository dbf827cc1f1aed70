import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  getNamedType,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isListType,
  isNonNullType,
  isObjectType,
  isRequiredArgument,
  isRequiredInputField,
} from 'graphql';
import { schema } from './client.ts';

/** What arguments may name: ids for arguments that are ids, texts for those that are texts. */
export interface Known {
  ids: readonly string[];
  texts: readonly string[];
}

type Field = GraphQLField<unknown, unknown>;

/**
 * Selections of a field, once for each thing that its required arguments can name, with everything below it to a depth.
 * All of it comes from the schema, so that a field that is new is walked too.
 */
export function selectionsOf(field: Field, known: Known, depth: number): string[] {
  const below = selectionBelow(field.type, known, depth);
  return below === null
    ? []
    : argumentLists(field.args, known).map((args) => `${field.name}${args} ${below}`);
}

/** A selection of a field with these arguments, and with everything below it to a depth. */
export const selectionWith = (field: Field, args: string, known: Known, depth: number): string =>
  `${field.name}(${args}) ${selectionBelow(field.type, known, depth) ?? ''}`;

/** Names of the objects that fields of these types lead to, over however many others. */
export function objectsBelow(...types: (GraphQLObjectType | null | undefined)[]): Set<string> {
  const found = new Set<string>();
  const visit = (type: GraphQLObjectType): void => {
    for (const field of Object.values(type.getFields())) {
      const named = getNamedType(field.type);
      const objects = isObjectType(named)
        ? [named]
        : isAbstractType(named)
          ? schema.getPossibleTypes(named)
          : [];
      for (const object of objects) {
        if (found.has(object.name)) continue;
        found.add(object.name);
        visit(object);
      }
    }
  };
  for (const type of types) if (type) visit(type);
  return found;
}

/** Null: it needs more depth than there is. */
function selectionBelow(type: GraphQLOutputType, known: Known, depth: number): string | null {
  const named = getNamedType(type);
  if (!isCompositeType(named)) return '';
  if (depth === 0) return null;
  if (isObjectType(named)) return `{ __typename ${fieldsOf(named.name, known, depth - 1)} }`;
  const members = schema
    .getPossibleTypes(named)
    .map(({ name }) => `... on ${name} { ${fieldsOf(name, known, depth - 1)} }`);
  return `{ __typename ${members.join(' ')} }`;
}

function fieldsOf(typeName: string, known: Known, depth: number): string {
  const type = schema.getType(typeName);
  if (!isObjectType(type) && !isInterfaceType(type)) return '';
  const selected = Object.values(type.getFields()).flatMap((field) =>
    // Members of a union may have fields of one name and of different types: names of one's own never conflict.
    selectionsOf(field, known, depth).map((selection, i) => `${typeName}_${field.name}_${i}: ${selection}`),
  );
  return selected.join(' ') || '__typename';
}

function argumentLists(args: readonly GraphQLArgument[], known: Known): string[] {
  const required = args.filter(isRequiredArgument);
  if (required.length === 0) return [''];
  return products(
    required.map(({ name, type }) => literals(type, known).map((literal) => `${name}: ${literal}`)),
  ).map((list) => `(${list.join(', ')})`);
}

const products = (lists: readonly string[][]): string[][] =>
  lists.reduce<string[][]>((all, list) => all.flatMap((some) => list.map((one) => [...some, one])), [[]]);

/** Values that an input may have, with nothing that is optional. */
function literals(type: GraphQLInputType, known: Known): string[] {
  if (isNonNullType(type)) return literals(type.ofType, known);
  if (isListType(type)) return literals(type.ofType, known).map((literal) => `[${literal}]`);
  if (isEnumType(type))
    return type
      .getValues()
      .slice(0, 1)
      .map(({ name }) => name);
  if (isInputObjectType(type)) {
    const fields = Object.values(type.getFields());
    const given = (names: typeof fields): string[][] =>
      names.map((field) => literals(field.type, known).map((literal) => `${field.name}: ${literal}`));
    return type.isOneOf
      ? given(fields)
          .flat()
          .map((field) => `{ ${field} }`)
      : products(given(fields.filter(isRequiredInputField))).map((list) => `{ ${list.join(', ')} }`);
  }
  switch (type.name) {
    case 'ID':
      return known.ids.map((id) => JSON.stringify(id));
    case 'String':
      return known.texts.map((text) => JSON.stringify(text));
    case 'Boolean':
      return ['true'];
    case 'JSON':
      return ['{}'];
    case 'DateTime':
      return ['"2030-01-01T00:00:00Z"'];
    case 'Decimal':
      return ['"1"'];
    default:
      return ['1'];
  }
}

/** A value that was selected: where it is in the answer, the field that it is of, and what it is. */
export interface Leaf {
  path: string;
  field: string;
  value: unknown;
}

/** Every leaf of an answer. Objects of the schema say their type; others are JSON, which is one value. */
export function leavesOf(value: unknown, path = '', field = ''): Leaf[] {
  const isList = Array.isArray(value) && value.some((entry) => typeof entry?.__typename === 'string');
  if (isList) return value.flatMap((entry, i) => leavesOf(entry, `${path}[${i}]`, field));
  if (typeof value !== 'object' || value === null || !('__typename' in value))
    return [{ path, field, value }];
  return Object.entries(value).flatMap(([alias, entry]) =>
    leavesOf(
      entry,
      `${path}.${alias}`,
      `${String(value.__typename)}.${/_(\w+)_\d+$/.exec(alias)?.[1] ?? alias}`,
    ),
  );
}
