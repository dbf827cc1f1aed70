/** The language, and GraphQL, say what they stumbled over: a text that is no JSON, an answer that is no number. */
const quoting = new Set([
  'EvalError',
  'GraphQLError',
  'NonErrorThrown',
  'RangeError',
  'ReferenceError',
  'SyntaxError',
  'TypeError',
  'URIError',
]);
/** Of Postgres, classes of errors about its objects and its state, and what our own functions raise. Others quote values that were sent or stored. */
const withoutValues = /^(08|23|25|40|42|53|54|55|57|58|P0)/;
const frame = /^ +at .*(:\d+:\d+\)?|\(native\)|\(<anonymous>\))$/;
const deepest = 3;

/**
 * What failed, for a log, in one line. A message of Postgres or of the language that may quote what a client sent is
 * left out: then its kind, its code and what it is about are told.
 */
export function failureText(error: unknown): string {
  if (!(error instanceof Error)) return `a ${typeof error} was thrown`;
  const { code } = error as { code?: unknown };
  const kind = typeof code === 'string' ? `${error.name} ${code}` : error.name;
  const text = [kind, messageOf(error, code), aboutOf(error)].filter((part) => part !== null).join(': ');
  return error instanceof AggregateError
    ? [text, ...error.errors.slice(0, deepest).map(failureText)].join('; ')
    : text;
}

/** The same with the places in the code, and what it was caused by. */
export function failureWithStack(error: unknown, level = 1): string {
  if (!(error instanceof Error)) return failureText(error);
  const text = [failureText(error), ...(error.stack ?? '').split('\n').filter((line) => frame.test(line))];
  if (error.cause !== undefined && level < deepest)
    text.push(`caused by ${failureWithStack(error.cause, level + 1)}`);
  return text.join('\n');
}

function messageOf(error: Error, code: unknown): string | null {
  if (error.message === '') return null;
  const isOfPostgres = 'severity' in error && typeof code === 'string';
  const isSafe = isOfPostgres ? withoutValues.test(code) : !quoting.has(error.name);
  return isSafe ? error.message : null;
}

/** Names of Postgres' objects, not what is in them. */
function aboutOf(error: object): string | null {
  const about = ['table', 'column', 'constraint', 'routine'].flatMap((part) => {
    const name = (error as Record<string, unknown>)[part];
    return typeof name === 'string' ? [`${part} ${name}`] : [];
  });
  return about.length === 0 ? null : about.join(', ');
}
