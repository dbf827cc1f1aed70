import { isForbiddenKey, isStorable } from './json.ts';
import { limits } from './limits.ts';
import { InvalidInputError } from './problems.ts';

const control = /[\u0000-\u001F\u007F-\u009F]/;

/** A name, key or correlation id: 1 to 200 bytes after NFC, no control characters, not blank. */
export function parseName(value: string, field: string, maxBytes: number = limits.nameBytes): string {
  if (!isStorable(value) || control.test(value)) {
    throw new InvalidInputError(field, `${field} contains control characters or unpaired surrogates.`);
  }
  const name = value.normalize('NFC');
  if (name.trim() === '') throw new InvalidInputError(field, `${field} is blank.`);
  const bytes = Buffer.byteLength(name);
  if (bytes > maxBytes)
    throw new InvalidInputError(field, `${field} is ${bytes} bytes long; at most ${maxBytes} are allowed.`);
  return name;
}

export const parseOptionalName = (value: string | null | undefined, field: string): string | null =>
  value === null || value === undefined ? null : parseName(value, field);

export interface LabelInput {
  key: string;
  value: string;
}

/** Labels as an object; a key given twice is refused. */
export function parseLabels(
  labels: readonly LabelInput[] | null | undefined,
  field: string,
): Record<string, string> {
  if (!labels) return {};
  if (labels.length > limits.labels) {
    throw new InvalidInputError(
      field,
      `${field} has ${labels.length} labels; at most ${limits.labels} are allowed.`,
    );
  }
  const parsedLabels: Record<string, string> = {};
  for (const [i, label] of labels.entries()) {
    const key = parseName(label.key, `${field}[${i}].key`, limits.labelKeyBytes);
    const refuseKey = (why: string): never => {
      throw new InvalidInputError(`${field}[${i}].key`, `${field}[${i}].key is ${key}, which ${why}.`);
    };
    if (isForbiddenKey(key)) refuseKey('no label can be called');
    if (Object.hasOwn(parsedLabels, key)) refuseKey('is given twice');
    const value = label.value.normalize('NFC');
    if (!isStorable(value) || Buffer.byteLength(value) > limits.labelValueBytes) {
      throw new InvalidInputError(
        `${field}[${i}].value`,
        `${field}[${i}].value must be storable text of at most ${limits.labelValueBytes} bytes.`,
      );
    }
    parsedLabels[key] = value;
  }
  return parsedLabels;
}

/**
 * What a client asks for by names, with every text in it as names, keys, correlation ids and labels are stored: in NFC.
 * Else é as one character would not find é as two.
 */
export function inNfc<Question>(question: Question): Question;
export function inNfc(question: unknown): unknown {
  if (typeof question === 'string') return question.normalize('NFC');
  if (Array.isArray(question)) return question.map((entry: unknown) => inNfc(entry));
  if (typeof question !== 'object' || question === null || question instanceof Date) return question;
  return Object.fromEntries(Object.entries(question).map(([field, value]) => [field, inNfc<unknown>(value)]));
}

/** Cuts text to a number of UTF-8 bytes without splitting a character. */
export function cutBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  let end = maxBytes;
  // Continuation bytes are 10xxxxxx: step back to the start of the character that would be cut.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}
