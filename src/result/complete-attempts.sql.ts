import { arrayOfJson } from '../db/array-of-json.ts';
import { type JsonColumns, rowsOf } from '../db/json-columns.ts';
import type { Database } from '../db/pool.ts';
import { statement } from '../db/transaction.ts';
import { usageRows } from './book-usage.sql.ts';
import type { Report } from './parse-result.ts';

// The function complete_attempts (drizzle/0005_results.sql) decides which of them, and writes all that follows.
const completeSql = 'select runplane.complete_attempts($1, $2, $3, $4, $5, $6, $7, $8) as done';

/** Whether a report may be one after which nothing has to be decided; the rest of it stands in the database. */
export const mayCompletePlainly = (report: Report): boolean =>
  report.status === 'COMPLETED' && report.spawn.length === 0 && report.materializations.length === 0;

interface Completed {
  attemptId: string;
  taskId: string;
}

/**
 * Completes the attempts of most reports, in one statement that reads, decides and writes: those by which nothing begins,
 * fails or is joined. Answers their tasks; of the others nothing changed.
 */
export async function completeAttempts(
  db: Database,
  reports: readonly Report[],
): Promise<Map<string, string>> {
  const usage = reports.flatMap(usageRows);
  const { rows } = await statement<{ done: JsonColumns<Completed> }>(db, {
    name: 'complete-attempts',
    text: completeSql,
    values: [
      reports.map(({ attemptId }) => attemptId),
      arrayOfJson(reports.map(({ output }) => output)),
      reports.map(({ digest }) => digest),
      reports.map(({ sanitized }) => sanitized),
      reports.map(({ confidence }) => confidence),
      reports.map(({ traceId }) => traceId),
      reports.map(({ externalRunId }) => externalRunId),
      usage.length > 0 ? JSON.stringify(usage) : null,
    ],
  });
  return new Map(
    rows.flatMap(({ done }) => rowsOf<Completed>(done)).map(({ attemptId, taskId }) => [attemptId, taskId]),
  );
}
