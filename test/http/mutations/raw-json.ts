/** JSON text that no value of JavaScript is written as: numbers beyond its range, what is no JSON. */
export class Raw {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** An object as its members in order, so that a key can stand in it twice, or be any that JavaScript gives a meaning. */
export class Members {
  readonly entries: readonly (readonly [string, unknown])[];

  constructor(entries: readonly (readonly [string, unknown])[]) {
    this.entries = entries;
  }
}

/** JSON.stringify that knows raw text and members. Built without recursion: values may be nested as deep as they like. */
export function toJsonText(value: unknown): string {
  const text: string[] = [];
  const todo: (string | { value: unknown })[] = [{ value }];
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    if (typeof next === 'string') {
      text.push(next);
      continue;
    }
    const parts = partsOf(next.value);
    for (let i = parts.length - 1; i >= 0; i--) todo.push(parts[i] as string | { value: unknown });
  }
  return text.join('');
}

function partsOf(value: unknown): (string | { value: unknown })[] {
  if (value instanceof Raw) return [value.text];
  if (Array.isArray(value)) {
    const entries = value.flatMap((entry: unknown, i) => [i === 0 ? '' : ',', { value: entry }]);
    return ['[', ...entries, ']'];
  }
  if (typeof value !== 'object' || value === null) return [JSON.stringify(value) ?? 'null'];
  const members = value instanceof Members ? value.entries : Object.entries(value);
  const given = members.filter(([, entry]) => entry !== undefined);
  return [
    '{',
    ...given.flatMap(([key, entry], i) => [`${i === 0 ? '' : ','}${JSON.stringify(key)}:`, { value: entry }]),
    '}',
  ];
}
