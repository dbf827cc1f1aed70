import type { Database } from '../db/pool.ts';
import { readById, readRows } from './query.ts';
import { addTaskFilter, type TaskFilter, taskStatus, tasksFrom } from './task-filter.ts';
import { Where } from './where.ts';

/** Tasks by status, counted. */
export interface TaskCounts {
  blocked: number;
  enqueued: number;
  processing: number;
  completed: number;
  failed: number;
  cancelled: number;
}

const statuses = ['BLOCKED', 'ENQUEUED', 'PROCESSING', 'COMPLETED', 'FAILED', 'CANCELLED'];
const counts = statuses
  .map((status) => `(count(t.id) filter (where ${taskStatus} = '${status}'))::int as ${status.toLowerCase()}`)
  .join(', ');

const tasksAlone = 'runplane.tasks t left join runplane.leases l on l.task_id = t.id';

const ofRunsSql = `
select k.id, ${counts}
  from unnest($1::uuid[]) k(id)
  left join runplane.tasks t on t.run_id = k.id and t.deleted_at is null
  left join runplane.leases l on l.task_id = t.id
 group by k.id`;

export class CountQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async ofTasks(filter: TaskFilter): Promise<TaskCounts> {
    const where = new Where();
    where.and('t.deleted_at is null');
    addTaskFilter(where, filter);
    // Without conditions the joins would only cost time.
    const filtered = Object.values(filter).some((value) => value != null);
    const text = `select ${counts} from ${filtered ? tasksFrom : tasksAlone} where ${where.toString()}`;
    const [row] = await readRows<TaskCounts>(this.#db, { text, values: where.values });
    if (!row) throw new Error('Counting gave no row.');
    return row;
  }

  ofRuns(ids: readonly string[]): Promise<Map<string, TaskCounts & { id: string }>> {
    return readById(this.#db, 'task-counts-of-runs', ofRunsSql, ids);
  }
}
