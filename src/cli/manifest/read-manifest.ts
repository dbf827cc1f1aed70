import { coerceInputValue, type GraphQLInputType, isInputType } from 'graphql';
import { isMap, isScalar, LineCounter, parseDocument } from 'yaml';
import { buildSchema } from '../../graphql/schema.ts';
import { manifestNouns } from '../../operator/manifest/kinds.ts';
import type { ManifestEntry, ManifestProblem, MisshapenEntry } from '../../operator/manifest/types.ts';
import type { Noun } from '../../operator/rows.ts';
import { type Path, pathOfField, pathText, positionOf } from './positions.ts';

/** What is wrong with a manifest, and where in its text. */
export interface Fault {
  /** As in agents[2].leaseSeconds; empty: the text as a whole. */
  path: string;
  line: number;
  column: number;
  message: string;
}

export interface ReadManifest {
  entries: ManifestEntry[];
  misshapen: MisshapenEntry[];
  faults: Fault[];
  /** Where in the text a problem of an entry is. */
  locate: (problem: ManifestProblem) => Fault;
}

const sections = new Map<string, Noun>(manifestNouns.map((noun) => [`${noun}s`, noun]));
const sectionNames = [...sections.keys()];

/** Reads a manifest: YAML, or JSON, which is YAML too. Entries have the shape of the inputs of the API. */
export function readManifest(text: string): ReadManifest {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const faultAt = (path: Path, message: string): Fault => ({
    path: pathText(path),
    ...positionOf(document, lines, path),
    message,
  });
  const locate = ({ noun, index, field, message }: ManifestProblem): Fault =>
    faultAt([`${noun}s`, index, ...pathOfField(field)], message);
  const unreadable = (faults: Fault[]): ReadManifest => ({ entries: [], misshapen: [], faults, locate });

  const syntax = [...document.errors, ...document.warnings].map(({ message, pos: [at] }) => {
    const { line, col } = lines.linePos(at);
    return { path: '', line, column: col, message };
  });
  if (syntax.length > 0) return unreadable(syntax);
  const { contents } = document;
  if (contents === null || (isScalar(contents) && contents.value === null))
    return unreadable([faultAt([], `The manifest is empty; it needs one of ${sectionNames.join(', ')}.`)]);
  if (!isMap(contents))
    return unreadable([faultAt([], `The manifest must be an object with ${sectionNames.join(', ')}.`)]);

  const entries: ManifestEntry[] = [];
  const misshapen: MisshapenEntry[] = [];
  const faults: Fault[] = [];
  let value: Record<string, unknown>;
  try {
    value = document.toJS() as Record<string, unknown>;
  } catch (error) {
    if (error instanceof ReferenceError) return unreadable([faultAt([], `${error.message}.`)]);
    throw error;
  }
  for (const [section, list] of Object.entries(value)) {
    const noun = sections.get(section);
    if (!noun)
      faults.push(faultAt([section], `There is no ${section}; there are ${sectionNames.join(', ')}.`));
    else if (Array.isArray(list))
      for (const [index, given] of list.entries()) {
        const found = readEntry(noun, index, given);
        if ('input' in found) entries.push(found);
        else {
          misshapen.push({ noun, name: nameIn(given) });
          faults.push(...found.map(({ path, message }) => faultAt([section, index, ...path], message)));
        }
      }
    else if (list !== null) faults.push(faultAt([section], `${section} must be a list.`));
  }
  return { entries, misshapen, faults, locate };
}

const nameIn = (given: unknown): string | null =>
  typeof given === 'object' && given !== null && 'name' in given && typeof given.name === 'string'
    ? given.name
    : null;

/** Checks the shape of an entry against the input of its mutation, as the API does. */
function readEntry(
  noun: Noun,
  index: number,
  given: unknown,
): ManifestEntry | { path: Path; message: string }[] {
  const faults: { path: Path; message: string }[] = [];
  const canPause = noun === 'agent' || noun === 'queue';
  let fields = given;
  let paused: unknown = null;
  if (canPause && typeof given === 'object' && given !== null && !Array.isArray(given)) {
    ({ paused = null, ...fields } = given as { paused?: unknown });
    if (paused !== null && typeof paused !== 'boolean')
      faults.push({ path: ['paused'], message: 'paused must be true or false.' });
  }
  const input: unknown = coerceInputValue(fields ?? {}, inputTypeOf(noun), (path, _, { message }) => {
    const [, unknown] = /^Field "([^"]*)" is not defined/.exec(message) ?? [];
    faults.push({ path: unknown === undefined ? path : [...path, unknown], message });
  });
  return faults.length > 0
    ? faults
    : {
        noun,
        index,
        input: {
          ...(input as ManifestEntry['input']),
          ...(canPause && { paused: paused as boolean | null }),
        },
      };
}

let schema: ReturnType<typeof buildSchema> | null = null;

function inputTypeOf(noun: Noun): GraphQLInputType {
  schema ??= buildSchema();
  const type = schema.getType(`Save${noun.charAt(0).toUpperCase()}${noun.slice(1)}Input`);
  if (!type || !isInputType(type)) throw new Error(`The API has no input for a ${noun}.`);
  return type;
}
