import { limits } from '../domain/limits.ts';

/** A subscriber read more slowly than changes came, for longer than is tolerated; it resumes by its cursor. */
export class SlowConsumerError extends Error {
  readonly code = 'SLOW_CONSUMER';

  constructor() {
    super(
      `The stream was read too slowly for ${limits.streamUnreadSeconds} s. Resume after the last cursor.`,
    );
  }
}
