import { digest } from './digest.ts';
import { isJsonObject, type Json } from './json.ts';
import { pathStep } from './json-path.ts';

/** A place in which two values differ; undefined where one of them has nothing. */
export interface Difference {
  /** As in steps[0].maxAttempts. */
  path: string;
  before: Json | undefined;
  after: Json | undefined;
}

/** Where two values differ, as deep as both go on; entries of lists are compared by their place. */
export function differences(before: Json | undefined, after: Json | undefined, path = ''): Difference[] {
  if (isJsonObject(before) && isJsonObject(after)) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...keys].flatMap((key) =>
      differences(before[key], after[key], path + pathStep(key, path === '')),
    );
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const longer = before.length > after.length ? before : after;
    return longer.flatMap((_, i) => differences(before[i], after[i], `${path}[${i}]`));
  }
  return isEqual(before, after) ? [] : [{ path, before, after }];
}

const isEqual = (before: Json | undefined, after: Json | undefined): boolean =>
  before === undefined || after === undefined ? before === after : digest(before).equals(digest(after));
