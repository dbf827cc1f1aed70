import { limits } from '../../domain/limits.ts';
import { type InvalidInput, invalidInput } from '../../domain/problems.ts';
import type { Append, NewAttemptEvent } from './parse-append.ts';

/** What an attempt told so far. */
export interface StoredEvents {
  lastSequence: number;
  bytes: number;
}

export interface AppendDecision {
  /** Those that are not there yet; they follow the last sequence. */
  events: readonly NewAttemptEvent[];
  lastSequence: number;
}

/** Which of the events are new. Those that a repeated append names again are there already, and stay as they are. */
export function decideAppend(stored: StoredEvents, append: Append): AppendDecision | InvalidInput {
  const next = stored.lastSequence + 1;
  const first = append.firstSequence ?? next;
  if (first > next) {
    return invalidInput(
      'firstSequence',
      `firstSequence is ${first}, but the next event of this attempt is number ${next}; none may be missing.`,
    );
  }
  const events = append.events.slice(next - first);
  const lastSequence = stored.lastSequence + events.length;
  if (lastSequence > limits.attemptEvents) {
    return invalidInput(
      'events',
      `The attempt has ${stored.lastSequence} events; with these it would have more than ${limits.attemptEvents}, which are allowed.`,
    );
  }
  const bytes = events.reduce((sum, event) => sum + event.bytes, stored.bytes);
  if (events.length > 0 && bytes > limits.attemptEventBytes) {
    return invalidInput(
      'events',
      `The events of the attempt would have ${bytes} bytes; at most ${limits.attemptEventBytes} are allowed.`,
    );
  }
  return { events, lastSequence };
}
