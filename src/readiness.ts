/** What a process needs for its work. */
export interface Needed {
  db: { query(statement: { text: string }): Promise<unknown> };
  signal: { readonly listening: boolean };
  /** Null: events come by GraphQL alone, or to another process. */
  ingest: { notReady(): string[] } | null;
}

export interface Readiness {
  ready: boolean;
  /** Why it is not, and what else it does not do meanwhile. */
  reasons: string[];
}

/**
 * Whether requests can be sent to a process. Without a broker it answers them all the same, and no other replica would do
 * better: that is told, and is no reason to send none. Anybody may ask: what names hosts, users and databases is for the log.
 */
export async function readinessOf(
  { db, signal, ingest }: Needed,
  log: { warn(fields: object, message: string): void },
): Promise<Readiness> {
  const reasons: string[] = [];
  try {
    await db.query({ text: 'select from runplane.installation' });
  } catch (error) {
    log.warn(
      { error: error instanceof Error ? error.message : String(error) },
      'the database does not answer',
    );
    reasons.push('database: it does not answer, the log says why');
  }
  if (!signal.listening)
    reasons.push('listener: not connected, changes of other replicas are seen within a second');
  return { ready: reasons.length === 0, reasons: [...reasons, ...(ingest?.notReady() ?? [])] };
}
