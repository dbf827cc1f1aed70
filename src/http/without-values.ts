/** How reasons begin, of GraphQL and of our scalars: in front of the last of them stands the value. */
const reasons =
  'Expected|Field "|Exactly one|Int|Float|String|Boolean|ID|Value "|Enum "|A DateTime|A SafeInt|A Decimal|The cursor';
const invalidVariable = /^(Variable "\$\w+" got invalid value) (.*)$/s;
const valueAndReason = new RegExp(`^(.*); ((?:${reasons}).*)$`, 's');
const placeInVariable = / at "[\w.[\]]+"$/;

/**
 * What GraphQL says of a wrong value, without the value. It would quote the whole input that a fault is in, payloads and
 * lease tokens too, and what clients are told they write to their logs.
 */
export function withoutValues(message: string): string {
  const [, what, rest] = invalidVariable.exec(message) ?? [];
  if (what === undefined || rest === undefined) return withoutValue(message);
  const [, value, reason] = valueAndReason.exec(rest) ?? [];
  if (value === undefined || reason === undefined) return `${what}.`;
  return `${what}${placeInVariable.exec(value)?.[0] ?? ''}; ${withoutValue(reason)}`;
}

const withoutValue = (reason: string): string =>
  reason
    .replace(/^(\w+ cannot represent [\w -]*value): .*$/s, '$1.')
    .replace(/^(Enum "\w+" cannot represent [\w -]*value): .*$/s, '$1.')
    .replace(/^(Expected value of type "[^"]+"), found .*$/s, '$1.')
    .replace(/^Value ".{100,}" (does not exist in "\w+" enum\.)/s, 'The value $1');
