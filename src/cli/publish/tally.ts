import type { PublishOutcome } from './sender.ts';

/** What became of the lines so far. */
export interface Tally {
  lines: number;
  published: number;
  /** Stored by an earlier run, or a request whose answer was lost. */
  known: number;
  /** Launched by those that were published. */
  runs: number;
  /** Lines that have a problem, also those that are stored and that a route refuses. */
  refused: number;
}

/** Counts an event; answers what is wrong with it. */
export function tallyOutcome(
  tally: Tally,
  { __typename, message = '', runIds = [], replayed = false, refusals = [] }: PublishOutcome,
): string[] {
  tally.lines++;
  const isStored = __typename === 'PublishEventSuccess';
  const problems = isStored
    ? refusals.map((refusal) => `stored, but route ${refusal.route} did not launch: ${refusal.message}`)
    : [`${__typename}: ${message}`];
  if (isStored && replayed) tally.known++;
  else if (isStored) {
    tally.published++;
    tally.runs += runIds.length;
  }
  if (problems.length > 0) tally.refused++;
  return problems;
}
