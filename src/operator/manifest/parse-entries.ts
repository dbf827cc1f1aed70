import { InvalidInputError } from '../../domain/problems.ts';
import { parseName } from '../../domain/text.ts';
import { parseEach, parseIfVersion } from '../parse-fields.ts';
import type { Noun, Reference } from '../rows.ts';
import type { SaveRequest } from '../save.ts';
import { manifestKinds } from './kinds.ts';
import type { ManifestEntry, ManifestProblem, MisshapenEntry } from './types.ts';

/** An entry that is right as far as that can be told without a database. */
export interface ParsedEntry extends SaveRequest<object> {
  noun: Noun;
  index: number;
  references: Reference[];
}

export interface ParsedEntries {
  entries: ParsedEntry[];
  problems: ManifestProblem[];
  /** Of all entries, also of those that have problems or no shape. */
  names: ReadonlyMap<Noun, ReadonlySet<string>>;
}

/** Checks every entry, and reports everything that is wrong with each. */
export function parseEntries(
  given: readonly ManifestEntry[],
  misshapen: readonly MisshapenEntry[],
): ParsedEntries {
  const entries: ParsedEntry[] = [];
  const problems: ManifestProblem[] = [];
  const firstOf = new Map<Noun, Map<string, number>>();
  for (const entry of given) {
    const { noun, index } = entry;
    const known = firstOf.get(noun) ?? new Map<string, number>();
    firstOf.set(noun, known);
    const name = nameOf(entry);
    const first = name === null ? undefined : known.get(name);
    if (name !== null && first === undefined) known.set(name, index);
    if (first !== undefined) {
      const message = `name is ${JSON.stringify(name)}, which entry ${first} of the list has already.`;
      problems.push({ noun, index, field: 'name', message });
    }
    try {
      entries.push(parseEntry(entry));
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      for (const { field, message } of [error.problem, ...error.others])
        problems.push({ noun, index, field, message });
    }
  }
  const names = new Map([...firstOf].map(([noun, known]) => [noun, new Set(known.keys())]));
  for (const { noun, name } of misshapen)
    if (name !== null) names.set(noun, (names.get(noun) ?? new Set()).add(name.normalize('NFC')));
  return { entries, problems, names };
}

function parseEntry({ noun, index, input }: ManifestEntry): ParsedEntry {
  const kind = manifestKinds[noun];
  const request = parseEach<SaveRequest<object>>({
    name: () => parseName(input.name, 'name'),
    ifVersion: () => parseIfVersion(input.ifVersion),
    spec: () => kind.parse(input),
  });
  return { noun, index, ...request, references: kind.references(request.spec) };
}

/** Null where it is no name. */
function nameOf({ input }: ManifestEntry): string | null {
  try {
    return parseName(input.name, 'name');
  } catch (error) {
    if (error instanceof InvalidInputError) return null;
    throw error;
  }
}
