import { checkJson, isStorable, type Json } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { collected, InvalidInputError } from '../domain/problems.ts';
import { parseOptionalInteger } from '../domain/scalars.ts';
import { additions, readTemplate } from './template-syntax.ts';

/** The largest value of an integer column. */
export const maxInteger = 2_147_483_647;

/** An object by the parsers of its fields; throws with every field that is wrong. */
export function parseEach<Fields extends object>(
  parsers: {
    [Name in keyof Fields]: () => Fields[Name];
  },
): Fields {
  const names = Object.keys(parsers) as (keyof Fields)[];
  return Object.fromEntries(
    collected(names.map((name) => () => [name, parsers[name]()] as const)),
  ) as unknown as Fields;
}

/** The version that a save asks for; null: any. */
export const parseIfVersion = (value: number | null | undefined): number | null =>
  parseOptionalInteger(value, 'ifVersion', 0, maxInteger);

/** Text for people: a description, a reason. */
export function parseOptionalText(value: string | null | undefined, field: string): string | null {
  if (value == null) return null;
  if (!isStorable(value)) {
    throw new InvalidInputError(
      field,
      `${field} contains NUL or an unpaired surrogate, which cannot be stored.`,
    );
  }
  const bytes = Buffer.byteLength(value);
  if (bytes > limits.textBytes) {
    throw new InvalidInputError(
      field,
      `${field} is ${bytes} bytes long; at most ${limits.textBytes} are allowed.`,
    );
  }
  return value;
}

/** A JSON value; absent is null. */
export const parseJson = (value: unknown, field: string): Json => checkJson(value ?? null, field).value;

/** A json-e template whose syntax is right, and which takes only what it sees. Whether it renders depends on what it is given. */
export function parseTemplate(value: unknown, field: string, sees: readonly string[]): Json {
  const template = parseJson(value, field);
  const { fault, mentions } = readTemplate(template);
  if (fault)
    throw new InvalidInputError(field, `${field}${fault.path} is no json-e template: ${fault.message}.`);
  const unseen = mentions.find(({ name }) => !sees.includes(name) && !additions.has(name));
  if (unseen)
    throw new InvalidInputError(
      field,
      `${field}${unseen.path} names ${unseen.name}; the template sees ${sees.join(', ')}.`,
    );
  return template;
}
