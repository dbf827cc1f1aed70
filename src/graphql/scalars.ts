import { GraphQLError, Kind, type ValueNode, valueFromASTUntyped, visit } from 'graphql';
import { builder } from './builder.ts';
import { dateTimeOf } from './date-time.ts';

const refuse = (message: string): never => {
  throw new GraphQLError(message, { extensions: { code: 'BAD_USER_INPUT' } });
};

const textOf = (node: ValueNode, what: string): string =>
  node.kind === Kind.STRING ? node.value : refuse(`${what} must be a string.`);

function parseDateTime(value: unknown): Date {
  const date = typeof value === 'string' ? dateTimeOf(value) : null;
  return (
    date ?? refuse('A DateTime must be an RFC 3339 time with its offset, such as 2026-01-31T12:00:00.000Z.')
  );
}
builder.scalarType('DateTime', {
  description: 'A time as RFC 3339 text in UTC with milliseconds. In inputs any offset is understood.',
  serialize: (date) => date.toISOString(),
  parseValue: parseDateTime,
  parseLiteral: (node) => parseDateTime(textOf(node, 'A DateTime')),
});

/** Refuses names without quotes, which are values of enums: NaN would be read as the text "NaN". */
function parseJson(
  literal: ValueNode,
  variables: Parameters<typeof valueFromASTUntyped>[1],
): NonNullable<unknown> {
  visit(literal, {
    EnumValue: () => refuse('JSON has no names: a text is written in quotes.'),
  });
  // A null that stands for the whole value never comes here.
  return valueFromASTUntyped(literal, variables) as NonNullable<unknown>;
}
builder.scalarType('JSON', {
  description: 'Any JSON value: at most 64 levels deep, 100,000 values and 1 MiB (8 MiB in results).',
  serialize: (value) => value,
  // A null that stands for the whole value never comes here.
  parseValue: (value) => value as NonNullable<unknown>,
  parseLiteral: parseJson,
});

function parseSafeInt(value: unknown): number {
  return Number.isSafeInteger(value)
    ? (value as number)
    : refuse('A SafeInt must be an integer within ±(2^53 - 1).');
}
builder.scalarType('SafeInt', {
  description: 'An integer up to 2^53 - 1, as a JSON number. Token sums pass the 2^31 of Int.',
  serialize: parseSafeInt,
  parseValue: parseSafeInt,
  parseLiteral: (node) => parseSafeInt(node.kind === Kind.INT ? Number(node.value) : null),
});

function parseDecimal(value: unknown): string {
  const fits = typeof value === 'string' && /^-?\d{1,18}(\.\d{1,12})?$/.test(value);
  return fits
    ? value
    : refuse(
        'A Decimal must be a string such as "0.032786": at most 18 digits before the point and 12 after.',
      );
}
builder.scalarType('Decimal', {
  description:
    'An exact decimal number as text, such as "0.032786". Money is in USD unless a currency says otherwise.',
  serialize: (value) => value,
  parseValue: parseDecimal,
  parseLiteral: (node) => parseDecimal(textOf(node, 'A Decimal')),
});

function parseCursor(value: unknown): string {
  const fits = typeof value === 'string' && /^[\w-]{1,2000}$/.test(value);
  if (fits) return value;
  throw new GraphQLError('The cursor is none that this server gave.', {
    extensions: { code: 'INVALID_CURSOR' },
  });
}
builder.scalarType('Cursor', {
  description:
    'A position, opaque: of a list, bound to its filter and order, or of the change log, bound to this installation.',
  serialize: (value) => value,
  parseValue: parseCursor,
  parseLiteral: (node) => parseCursor(textOf(node, 'A Cursor')),
});
