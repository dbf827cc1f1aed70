import { type GraphQLField, type GraphQLOutputType, getNamedType, isListType, isUnionType } from 'graphql';
import { errors as documented } from '../../../src/errors.ts';
import { schema } from '../../graphql/client.ts';
import type { KnownThings } from './known-things.ts';

/** Data of an answer: JSON, whose form is checked here. */
export type Data = ReturnType<typeof JSON.parse>;

export interface Received {
  status: number;
  text: string;
}

/** Words of SQL, of Postgres and of stacks. */
const fromInside =
  /runplane\.|\bat [^\n]*\.[cm]?[jt]s:\d|node_modules|violates|syntax error at|duplicate key|invalid input syntax|invalid byte|unsupported Unicode|out of range|null value in|::jsonb|relation "|pg_|ECONN|Cannot read|is not a function|undefined/i;

/** Only what is looked for is left to Postgres to check. */
const foundByPostgres = 'A text contains NUL';

/** What is wrong with an answer, whatever was asked; null: nothing. */
export function faultOf(
  field: GraphQLField<unknown, unknown>,
  answer: Received,
  known: KnownThings,
): string | null {
  const { status, text } = answer;
  if (status >= 500) return `status ${status}`;
  const body = parse(text);
  if (typeof body !== 'object' || body === null || !('data' in body || 'errors' in body))
    return 'no answer of GraphQL';
  const { data, errors } = body;
  for (const error of errors ?? []) {
    const { code } = error.extensions ?? {};
    const entry = documented[code as keyof typeof documented];
    if (entry?.where !== 'graphql') return `the code ${code} is not documented`;
    if (code === 'INTERNAL_SERVER_ERROR' || code === 'UNAVAILABLE') return code;
    const quoted = quotedIn(error.message, known);
    if (quoted) return quoted;
    if (error.message.startsWith(foundByPostgres) && !field.args.some(({ name }) => name === 'filter'))
      return 'a text was not checked before Postgres refused it';
  }
  if (data === undefined || data === null || data[field.name] === null)
    return errors ? null : 'neither data nor errors';
  return membersOf(field.type, data[field.name], known);
}

function membersOf(type: GraphQLOutputType, value: Data, known: KnownThings): string | null {
  const named = getNamedType(type);
  const entries: Data[] = isListType(type) ? value : [value];
  if (!Array.isArray(entries)) return 'no list';
  if (!isUnionType(named)) return null;
  const members = new Set(named.getTypes().map(({ name }) => name));
  for (const entry of entries) {
    if (!members.has(entry.__typename)) return `${entry.__typename} is no ${named.name}`;
    const quoted = isProblem(entry) ? quotedIn(JSON.stringify(entry), known) : null;
    if (quoted) return quoted;
  }
  return null;
}

function quotedIn(text: string, known: KnownThings): string | null {
  if (known.secretIn(text)) return 'a message quotes a secret';
  const inside = fromInside.exec(text);
  if (inside) return `a message quotes ${JSON.stringify(inside[0])}`;
  return text.length > 20_000 ? 'a message is longer than what it is about' : null;
}

function parse(text: string): { data?: Data; errors?: Data[] } | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const problem = schema.getType('Problem');
export const problemTypes: ReadonlySet<string> = new Set(
  schema
    .getImplementations(problem as Parameters<typeof schema.getImplementations>[0])
    .objects.map(({ name }) => name),
);

export const isProblem = (entry: Data): boolean => problemTypes.has(entry?.__typename);

/** Nothing of it was done: an error, a problem, or problems alone. */
export const isRefused = (answer: Data): boolean =>
  answer === null || (Array.isArray(answer) ? answer.every(isProblem) : isProblem(answer));
