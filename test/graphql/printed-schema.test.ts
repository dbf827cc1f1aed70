import { readFileSync } from 'node:fs';
import {
  buildSchema,
  type GraphQLSchema,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  isSpecifiedDirective,
  isSpecifiedScalarType,
  lexicographicSortSchema,
  printSchema,
} from 'graphql';
import { expect, test } from 'vitest';
import { schema } from './client.ts';

const printed = readFileSync(new URL('../../schema/schema.graphql', import.meta.url), 'utf8');

test('schema/schema.graphql is the sorted print of the schema that is served, byte for byte', () => {
  expect(printed).toBe(`${printSchema(lexicographicSortSchema(schema))}\n`);
});

interface Described {
  name: string;
  description?: string | null | undefined;
}

/** Names of what a client may meet in a schema and is told nothing about. */
function undescribed(of: GraphQLSchema): string[] {
  const within = (owner: string, members: readonly Described[]): string[] =>
    members.filter(({ description }) => !description?.trim()).map(({ name }) => `${owner}${name}`);
  // What every schema has is described by the language.
  const types = Object.values(of.getTypeMap()).filter(
    (type) => !type.name.startsWith('__') && !isSpecifiedScalarType(type),
  );
  const directives = of.getDirectives().filter((directive) => !isSpecifiedDirective(directive));
  return [
    ...within('', types),
    ...within('@', directives),
    ...directives.flatMap(({ name, args }) => within(`@${name}.`, args)),
    ...types.flatMap((type) => {
      if (isEnumType(type)) return within(`${type.name}.`, type.getValues());
      if (isInputObjectType(type)) return within(`${type.name}.`, Object.values(type.getFields()));
      if (!isObjectType(type) && !isInterfaceType(type)) return [];
      const fields = Object.values(type.getFields());
      return [
        ...within(`${type.name}.`, fields),
        ...fields.flatMap(({ name, args }) => within(`${type.name}.${name}.`, args)),
      ];
    }),
  ];
}

test('every type, field, argument, input field and value of an enum says what it is', () => {
  expect(undescribed(schema)).toEqual([]);
});

test('what says nothing is found, wherever it stands', () => {
  const mute = buildSchema(`
    directive @mute(argument: Int) on FIELD
    interface Face { field(argument: Int): Scalar }
    type Query implements Face { field(argument: Int): Scalar union: Union }
    union Union = Query
    scalar Scalar
    enum Enum { VALUE }
    input Input { " " field: Int }
  `);
  expect(undescribed(mute).sort()).toEqual(
    [
      '@mute',
      '@mute.argument',
      'Enum',
      'Enum.VALUE',
      'Face',
      'Face.field',
      'Face.field.argument',
      'Input',
      'Input.field',
      'Query',
      'Query.field',
      'Query.field.argument',
      'Query.union',
      'Scalar',
      'Union',
    ].sort(),
  );
});
