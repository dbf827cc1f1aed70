import { type GraphQLInputField, getNamedType, isInputObjectType, isNonNullType } from 'graphql';
import { expect, test } from 'vitest';
import { schema } from './client.ts';

const inputs = Object.values(schema.getTypeMap()).filter(isInputObjectType);

/** The fields of an input, and of those that stand in it, with their paths. */
const fieldsIn = (fields: GraphQLInputField[], at: string): { path: string; field: GraphQLInputField }[] =>
  fields.flatMap((field) => {
    const path = `${at}.${field.name}`;
    const type = getNamedType(field.type);
    const within = isInputObjectType(type) && !type.isOneOf ? Object.values(type.getFields()) : [];
    return [{ path, field }, ...fieldsIn(within, path)];
  });

test('what is saved tells the default of each field that may be absent', () => {
  const saved = inputs.filter(({ name }) => /^Save\w+Input$/.test(name));
  expect(saved).toHaveLength(6);
  const optional = saved
    .flatMap((input) => fieldsIn(Object.values(input.getFields()), input.name))
    .filter(({ field }) => !isNonNullType(field.type));
  expect(optional.length).toBeGreaterThan(40);
  const silent = optional.filter(({ field }) => !/\bdefaults?\b|\babsent\b/i.test(field.description ?? ''));
  expect(silent.map(({ path }) => path)).toEqual([]);
});
