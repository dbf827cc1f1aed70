/** How a path goes on at a key of an object: .key, or ["key"] where that is no name; the first one has no dot. */
export function pathStep(key: string, isFirst = false): string {
  if (!/^[$a-zA-Z_][\w$]*$/.test(key)) return `[${JSON.stringify(key)}]`;
  return isFirst ? key : `.${key}`;
}
