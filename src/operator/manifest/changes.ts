import { differences } from '../../domain/difference.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { Noun } from '../rows.ts';
import type { Saved } from '../save.ts';
import type { ObjectChange } from './types.ts';

/** What a save did. */
export function changeOf(noun: Noun, { name, version, changed, before, spec }: Saved<object>): ObjectChange {
  const after = spec as JsonObject;
  const { version: versionBefore = null, ...current } = { ...before } as JsonObject;
  return {
    action: before === null ? 'create' : changed ? 'update' : 'unchanged',
    noun,
    name,
    versions: { before: versionBefore as number | null, after: version },
    fields: before === null ? [] : differences(current, after),
    state: stateOf(after),
  };
}

export function stateOf(spec: JsonObject): ObjectChange['state'] {
  if (spec.enabled === false) return 'disabled';
  return spec.paused === true ? 'paused' : null;
}
