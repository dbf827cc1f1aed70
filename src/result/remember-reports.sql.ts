import type { Queryable } from '../db/pool.ts';
import type { Report } from './parse-result.ts';

const rememberSql = `
update runplane.attempts a set late = true, result_digest = decode(o.digest, 'hex'), sanitized = o.sanitized,
       trace_id = coalesce(o.trace_id, a.trace_id), external_run_id = coalesce(o.external_run_id, a.external_run_id)
  from json_to_recordset($1::json) as o(attempt_id uuid, digest text, sanitized boolean, trace_id text, external_run_id text)
 where a.id = o.attempt_id`;

/** Keeps reports that came after their attempt had ended. */
export async function rememberReports(
  tx: Queryable,
  reports: readonly { attemptId: string; report: Report }[],
): Promise<void> {
  if (reports.length === 0) return;
  const rows = reports.map(({ attemptId, report }) => ({
    attempt_id: attemptId,
    digest: report.digest,
    sanitized: report.sanitized,
    trace_id: report.traceId,
    external_run_id: report.externalRunId,
  }));
  await tx.query({ name: 'remember-reports', text: rememberSql, values: [JSON.stringify(rows)] });
}
