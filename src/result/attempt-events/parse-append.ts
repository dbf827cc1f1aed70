import { checkJson, type Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { InvalidInputError } from '../../domain/problems.ts';
import { parseOptionalInteger, parseTime } from '../../domain/scalars.ts';
import { parseName } from '../../domain/text.ts';
import type { AppendAttemptEventsInput } from '../types.ts';

/** An event of an attempt that may be stored. */
export interface NewAttemptEvent {
  type: string;
  /** Null: when it is appended. */
  at: Date | null;
  data: Json;
  /** Of its type and data. */
  bytes: number;
  repaired: boolean;
}

export interface Append {
  attemptId: string;
  /** Null: after what is there. */
  firstSequence: number | null;
  events: NewAttemptEvent[];
}

/** Checks what a worker appends; text of models is repaired where it cannot be stored. */
export function parseAppend(input: Omit<AppendAttemptEventsInput, 'lease'>, attemptId: string): Append {
  const { events } = input;
  if (events.length > limits.appendedEvents) {
    throw new InvalidInputError(
      'events',
      `events has ${events.length} entries; at most ${limits.appendedEvents} can be appended at once.`,
    );
  }
  return {
    attemptId,
    firstSequence: parseOptionalInteger(input.firstSequence, 'firstSequence', 1, limits.attemptEvents),
    events: events.map(({ type, at, data }, i) => {
      const field = `events[${i}]`;
      const checked = checkJson(data ?? null, `${field}.data`, {
        repair: true,
        maxBytes: limits.eventDataBytes,
      });
      const name = parseName(type, `${field}.type`);
      return {
        type: name,
        at: parseTime(at, `${field}.at`),
        data: checked.value,
        bytes: Buffer.byteLength(name) + checked.bytes,
        repaired: checked.repaired,
      };
    }),
  };
}
