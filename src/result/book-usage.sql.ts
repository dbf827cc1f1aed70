import type { Queryable } from '../db/pool.ts';
import type { ModelUsage } from './parse-usage.ts';

interface AttemptUsage {
  attemptId: string;
  usage: readonly ModelUsage[];
}

/** Books what attempts used, by the function book_usage (drizzle/0005_results.sql). */
export async function bookUsage(tx: Queryable, attempts: readonly AttemptUsage[]): Promise<void> {
  const rows = attempts.flatMap(usageRows);
  if (rows.length === 0) return;
  await tx.send({
    name: 'book-usage',
    text: 'select runplane.book_usage($1)',
    values: [JSON.stringify(rows)],
  });
}

/** As book_usage takes them. What is absent is not sent: reading a null costs the database as much as reading a value. */
export const usageRows = ({ attemptId, usage }: AttemptUsage): Record<string, unknown>[] =>
  usage.map((one) => ({
    attempt_id: attemptId,
    ...Object.fromEntries(Object.entries(one).filter(([, value]) => value !== null)),
  }));
