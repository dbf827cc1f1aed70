import type { AttemptEvent } from '../changelog/types.ts';
import type { Database } from '../db/pool.ts';
import { type ListDefinition, readChildLists } from './list.ts';
import type { Page, PageArgs } from './page.ts';

const ofAttempt: ListDefinition = {
  name: 'events of attempt',
  columns: `x.id as number, x.sequence, x.attempt_id as "attemptId", x.task_id as "taskId", x.type, x.at, x.data`,
  from: 'runplane.attempt_events x',
  key: [{ sql: 'x.sequence', type: 'integer' }],
  descending: false,
};

export class AttemptEventQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** In the order of their sequences. */
  ofAttempts(attemptIds: readonly string[], page: PageArgs): Promise<Map<string, Page<AttemptEvent>>> {
    return readChildLists(
      this.#db,
      { list: ofAttempt, conditions: (where) => where.and('x.attempt_id = parent.id') },
      attemptIds,
      page,
    );
  }
}
