import { type GraphQLInputType, getNamedType, isEnumType, isInputObjectType } from 'graphql';
import { Members, Raw } from './raw-json.ts';

const isName = /^[_A-Za-z]\w*$/;

/** A value as it stands in a document. Null: no document can say it, as its keys are no names. */
export function toLiteral(value: unknown, type: GraphQLInputType | null): string | null {
  if (value instanceof Raw) return value.text.length > 1000 ? null : value.text;
  const named = type && getNamedType(type);
  if (Array.isArray(value)) {
    const entries = value.map((entry: unknown) => toLiteral(entry, type));
    return entries.includes(null) ? null : `[${entries.join(', ')}]`;
  }
  if (typeof value === 'object' && value !== null) {
    const members = value instanceof Members ? value.entries : Object.entries(value);
    const fields = isInputObjectType(named) ? named.getFields() : {};
    const literals = members.map(([key, entry]) => {
      const literal = isName.test(key) ? toLiteral(entry, fields[key]?.type ?? null) : null;
      return literal === null ? null : `${key}: ${literal}`;
    });
    return literals.includes(null) ? null : `{${literals.join(', ')}}`;
  }
  if (isEnumType(named) && typeof value === 'string' && isName.test(value)) return value;
  return JSON.stringify(value);
}
