import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isPair,
  type LineCounter,
  type Node,
} from 'yaml';

/** Keys and places in lists, from the top. */
export type Path = readonly (string | number)[];

/** As in agents[2].retryPolicy.jitter. */
export const pathText = (path: Path): string =>
  path.map((step, i) => (typeof step === 'number' ? `[${step}]` : i === 0 ? step : `.${step}`)).join('');

/** The path that the name of a field tells, as in steps[0].agent. */
export const pathOfField = (field: string | null): Path =>
  field === null
    ? []
    : [...field.matchAll(/\[(\d+)\]|[^.[\]]+/g)].map(([key, place]) =>
        place === undefined ? key : Number(place),
      );

/** The line and column, from 1, of what is at a path, or of the last thing on the way there. */
export function positionOf(
  document: Document.Parsed,
  lines: LineCounter,
  path: Path,
): { line: number; column: number } {
  let node: Node | null = document.contents;
  let offset = node?.range?.[0] ?? 0;
  for (const step of path) {
    if (isAlias(node)) node = node.resolve(document) ?? null;
    if (!isCollection(node)) break;
    const item = isMap(node)
      ? node.items.find(({ key }) => String(key) === String(step))
      : node.items[Number(step)];
    // A key stands where people look for it; its value may be lines below.
    const start = isPair(item) ? item.key : item;
    if (!isNode(start)) break;
    offset = start.range?.[0] ?? offset;
    const next: unknown = isPair(item) ? item.value : item;
    node = isNode(next) ? next : null;
  }
  const { line, col } = lines.linePos(offset);
  return { line, column: col };
}
