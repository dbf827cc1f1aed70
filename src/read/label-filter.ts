import type { LabelFilter } from '../changelog/types.ts';
import { limits } from '../domain/limits.ts';
import { ReadError } from './errors.ts';
import type { Where } from './where.ts';

export interface LabelFilters {
  /** All of them. */
  labels?: readonly LabelFilter[] | null;
  /** At least one of them. */
  anyLabels?: readonly LabelFilter[] | null;
}

/** An empty list of labels matches nothing, like every empty list of a filter. */
export function addLabelFilters(where: Where, column: string, { labels, anyLabels }: LabelFilters): void {
  for (const [list, joint, name] of [
    [labels, ' and ', 'labels'],
    [anyLabels, ' or ', 'anyLabels'],
  ] as const) {
    if (list == null) continue;
    if (list.length > limits.labels) {
      const message = `filter.${name} has ${list.length} entries; at most ${limits.labels} are allowed.`;
      throw new ReadError('BAD_USER_INPUT', message, `filter.${name}`);
    }
    where.and(
      list.length === 0 ? 'false' : `(${list.map((label) => hasLabel(where, column, label)).join(joint)})`,
    );
  }
}

function hasLabel(where: Where, column: string, { key, values }: LabelFilter): string {
  const name = `${where.param(key)}::text`;
  if (values == null) return `${column} ? ${name}`;
  return `${column} ->> ${name} = any(${where.param(values)}::text[])`;
}
