import type { GraphQLError } from 'graphql';

const inVariable = /^Variable "\$\w+" got invalid value/;
const placeInVariable = / at "[\w.[\]]+"$/;

/**
 * What GraphQL says of a wrong value or document, without the values. It would quote the whole input that a fault is in,
 * payloads and lease tokens too, and what clients are told they write to their logs. Names of fields, arguments and types stay.
 */
export function withoutValues({ message, originalError }: GraphQLError): string {
  const [what] = inVariable.exec(message) ?? [];
  if (what === undefined) return withoutValue(message);
  // The reason is at the end as it was given, and in front of it the place, if it is not the variable itself.
  const reason = originalError?.message;
  if (reason === undefined || !message.endsWith(`; ${reason}`)) return `${what}.`;
  const place = placeInVariable.exec(message.slice(0, -reason.length - 2))?.[0] ?? '';
  return `${what}${place}; ${withoutValue(reason)}`;
}

const withoutValue = (reason: string): string =>
  reason
    .replace(/^(\w+ cannot represent [\w -]*value): .*$/s, '$1.')
    .replace(/^(Enum "\w+" cannot represent [\w -]*value): .*$/s, '$1.')
    .replace(/^(Expected value of type "[^"]+"), found .*$/s, '$1.')
    .replace(/^Value ".*" (does not exist in "\w+" enum\.)/s, 'The value $1')
    .replace(/^(Argument "\w+" has invalid value) .*$/s, '$1.')
    .replace(/^(Syntax Error: .*\b(?:BlockString|String|Int|Float)) ".*"\.$/s, '$1.')
    .replace(/^(Syntax Error: Invalid \w+ escape sequence): .*$/s, '$1.');
