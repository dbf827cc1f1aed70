import { type GraphQLInputType, getNamedType, getNullableType, isInputObjectType, isListType } from 'graphql';
import { isStorable, repairText } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { Data } from './answers.ts';
import type { Sent } from './read-back.ts';

/** Texts for people; of those of errors the end may be cut. Any other text is a name, or as short as one. */
const longTexts = new Set(['description', 'reason', 'message']);
/** What is only looked for may be anything. */
export const notStored = new Set(['filter']);

/** JSON that comes from models: what of its text cannot be stored is replaced. Any other JSON has 1 MiB, and is not. */
const ofModels: Record<string, number> = {
  'ReportResultInput.output': limits.resultJsonBytes,
  'MaterializationInput.metadata': limits.metadataBytes,
  'SpawnTaskInput.input': limits.jsonBytes,
  'ModelUsageInput.raw': limits.checkpointBytes,
  'ExtendLeaseInput.checkpoint': limits.checkpointBytes,
  'AttemptEventInput.data': limits.eventDataBytes,
};

/** How many bytes JSON may have, by the input that it stands in. */
export const bytesOfJson = (place: string): number => ofModels[place] ?? limits.jsonBytes;

interface Leaf {
  place: string;
  type: string;
  value: Data;
}

/** What was accepted and should not have been: texts that no name is as long as, or that cannot be stored, and JSON beyond its limits. */
export const wronglyAccepted = (owner: string, fields: Sent, sent: Data): string[] =>
  leavesIn(owner, fields, sent).flatMap(({ place, type, value }) => {
    const fault = type === 'String' ? textFault(value) : type === 'JSON' ? jsonFault(place, value) : null;
    return fault === null ? [] : [`${place}: ${fault}`];
  });

function leavesIn(owner: string, fields: Sent, sent: Data): Leaf[] {
  return fields.flatMap(({ name, type }) => {
    const value = sent?.[name];
    const isIgnored = name === 'error' && sent.status !== undefined && sent.status !== 'FAILED';
    if (value == null || notStored.has(name) || longTexts.has(name) || isIgnored) return [];
    return leavesOf(`${owner}.${name}`, type, value);
  });
}

function leavesOf(place: string, type: GraphQLInputType, value: Data): Leaf[] {
  const nullable = getNullableType(type);
  if (isListType(nullable))
    return [value].flat().flatMap((entry: Data) => leavesOf(place, nullable.ofType, entry));
  const named = getNamedType(type);
  if (isInputObjectType(named)) return leavesIn(named.name, Object.values(named.getFields()), value);
  return [{ place, type: named.name, value }];
}

function textFault(value: Data): string | null {
  if (typeof value !== 'string') return null;
  if (!isStorable(value)) return 'a text that cannot be stored';
  return Buffer.byteLength(value.normalize('NFC')) > limits.nameBytes ? 'a text that is too long' : null;
}

const forbiddenKeys = ['__proto__', 'constructor', 'prototype'];

/** By what is promised, and not by the code that keeps it. */
function jsonFault(place: string, value: Data): string | null {
  const isRepaired = place in ofModels;
  const todo: { value: Data; depth: number }[] = [{ value, depth: 1 }];
  for (let nodes = 1; ; nodes++) {
    const next = todo.pop();
    if (!next) break;
    if (nodes > limits.jsonNodes) return 'more values than are allowed';
    if (next.depth > limits.jsonDepth) return 'more levels than are allowed';
    if (typeof next.value === 'number' && !isExact(next.value)) return 'a number that is not kept as it is';
    if (typeof next.value === 'string' && !isRepaired && !isStorable(next.value))
      return 'a text that cannot be stored';
    if (typeof next.value !== 'object' || next.value === null) continue;
    for (const [key, entry] of Object.entries<Data>(next.value)) {
      if (!Array.isArray(next.value) && forbiddenKeys.includes(key)) return `the key ${key}`;
      if (!isRepaired && !isStorable(key)) return 'a key that cannot be stored';
      todo.push({ value: entry, depth: next.depth + 1 });
    }
  }
  const bytes = Buffer.byteLength(JSON.stringify(value, (_, entry: unknown) => repairedText(entry)));
  return bytes > bytesOfJson(place) ? `${bytes} bytes` : null;
}

const isExact = (value: number): boolean =>
  Number.isFinite(value) &&
  (!Number.isInteger(value) || Number.isSafeInteger(value) || Math.abs(value) >= 1e21);

const repairedText = (entry: unknown): unknown => (typeof entry === 'string' ? repairText(entry) : entry);
