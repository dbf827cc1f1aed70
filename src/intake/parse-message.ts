import { limits } from '../domain/limits.ts';
import { InvalidInputError } from '../domain/problems.ts';

/** The JSON that a broker's message is; throws InvalidInputError. */
export function parseMessage(data: Uint8Array): unknown {
  if (data.length > limits.jsonBytes) {
    throw new InvalidInputError(
      'payload',
      `The message is ${data.length} bytes; at most ${limits.jsonBytes} are allowed.`,
    );
  }
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(data));
  } catch {
    // What the parser says quotes the message.
    throw new InvalidInputError('payload', 'The message is no JSON in UTF-8.');
  }
}
