import { limits } from './limits.ts';
import { InvalidInputError } from './problems.ts';

export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const forbiddenKeys = new Set(['__proto__', 'constructor', 'prototype']);
/** Keys that turn into something else when an object is copied by assignment. */
export const isForbiddenKey = (key: string): boolean => forbiddenKeys.has(key);
/** NUL and unpaired surrogates: Postgres cannot store them as text. */
const unstorable = /\u0000|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/;
const unstorableEverywhere = new RegExp(unstorable, 'g');

export const isStorable = (text: string): boolean => !unstorable.test(text);

export interface JsonSize {
  bytes: number;
  nodes: number;
  /** A value that is no array and no object has 1. */
  depth: number;
}

/** How large a value is in the terms of the input limits. */
export function sizeOfJson(value: Json): JsonSize {
  let nodes = 0;
  const measure = (v: Json): number => {
    nodes++;
    if (typeof v !== 'object' || v === null) return 1;
    let deepest = 0;
    for (const entry of Array.isArray(v) ? v : Object.values(v)) deepest = Math.max(deepest, measure(entry));
    return deepest + 1;
  };
  const depth = measure(value);
  return { bytes: Buffer.byteLength(JSON.stringify(value)), nodes, depth };
}

/** Text with everything that Postgres cannot store replaced by U+FFFD. */
export const repairText = (text: string): string => text.replace(unstorableEverywhere, '\uFFFD');

/**
 * Checks a JSON value against the input limits; throws with the field's name.
 * In repair mode text that cannot be stored is replaced instead of refused, as real models produce it. `bytes` are those
 * of the value written out.
 */
export function checkJson(
  value: unknown,
  field: string,
  options: { repair?: boolean; maxBytes?: number } = {},
): { value: Json; bytes: number; repaired: boolean } {
  if (value === null) return { value, bytes: 4, repaired: false };
  const { repair = false, maxBytes = limits.jsonBytes } = options;
  let nodes = 0;
  let repaired = false;
  let characters = 0;
  const text = (s: string, where: string): string => {
    // Before anything looks at it: a template can give a string of 2^29 characters.
    characters += s.length;
    if (characters > maxBytes)
      throw new InvalidInputError(field, `${field} has more than ${maxBytes} bytes, which are allowed.`);
    if (!unstorable.test(s)) return s;
    if (!repair) {
      throw new InvalidInputError(
        field,
        `${where} contains NUL or an unpaired surrogate, which cannot be stored.`,
      );
    }
    repaired = true;
    return repairText(s);
  };
  const walk = (v: unknown, depth: number): Json => {
    if (++nodes > limits.jsonNodes) {
      throw new InvalidInputError(field, `${field} has more than ${limits.jsonNodes} values.`);
    }
    if (depth > limits.jsonDepth) {
      throw new InvalidInputError(field, `${field} is nested deeper than ${limits.jsonDepth} levels.`);
    }
    switch (typeof v) {
      case 'string':
        return text(v, field);
      case 'boolean':
        return v;
      case 'number':
        if (!Number.isFinite(v))
          throw new InvalidInputError(field, `${field} contains a number that is not finite.`);
        if (Number.isInteger(v) && !Number.isSafeInteger(v) && Math.abs(v) < 1e21) {
          throw new InvalidInputError(
            field,
            `${field} contains an integer beyond 2^53; send it as a string.`,
          );
        }
        return v;
      case 'object':
        break;
      default:
        throw new InvalidInputError(field, `${field} contains a value that is not JSON.`);
    }
    if (v === null) return null;
    if (Array.isArray(v)) return v.map((entry) => walk(entry, depth + 1));
    const copy: JsonObject = {};
    for (const [key, entry] of Object.entries(v)) {
      if (isForbiddenKey(key))
        throw new InvalidInputError(field, `${field} has a key ${key}, which is not allowed.`);
      copy[text(key, `a key of ${field}`)] = walk(entry, depth + 1);
    }
    return copy;
  };
  const checked = walk(value, 1);
  const bytes = Buffer.byteLength(JSON.stringify(checked));
  if (bytes > maxBytes)
    throw new InvalidInputError(field, `${field} is ${bytes} bytes; at most ${maxBytes} are allowed.`);
  return { value: checked, bytes, repaired };
}
