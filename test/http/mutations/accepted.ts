import { type GraphQLInputType, getNamedType, getNullableType, isInputObjectType, isListType } from 'graphql';
import { isStorable } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { Data } from './answers.ts';
import type { Sent } from './read-back.ts';

/** Texts for people; of those of errors the end may be cut. Any other text is a name, or as short as one. */
const longTexts = new Set(['description', 'reason', 'message']);
/** What is only looked for may be anything. */
const notStored = new Set(['filter']);

/** Texts that were accepted although no name is as long, or they cannot be stored. */
export const wrongTexts = (fields: Sent, sent: Data): string[] =>
  namesIn(fields, sent).filter(
    (text) => !isStorable(text) || Buffer.byteLength(text.normalize('NFC')) > limits.nameBytes,
  );

function namesIn(fields: Sent, sent: Data): string[] {
  return fields.flatMap(({ name, type }) => {
    const value = sent?.[name];
    const isIgnored = name === 'error' && sent.status !== undefined && sent.status !== 'FAILED';
    if (value == null || notStored.has(name) || longTexts.has(name) || isIgnored) return [];
    return textsOf(type, value);
  });
}

function textsOf(type: GraphQLInputType, value: Data): string[] {
  const nullable = getNullableType(type);
  if (isListType(nullable)) return [value].flat().flatMap((entry) => textsOf(nullable.ofType, entry));
  const named = getNamedType(type);
  if (isInputObjectType(named)) return namesIn(Object.values(named.getFields()), value);
  return named.name === 'String' && typeof value === 'string' ? [value] : [];
}
