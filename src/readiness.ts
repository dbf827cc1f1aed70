/** What a process needs for its work. */
export interface Needed {
  db: { query(statement: { text: string }): Promise<unknown> };
  signal: { readonly listening: boolean };
  /** Null: events come by GraphQL alone, or to another process. */
  ingest: { notReady(): string[] } | null;
}

/** Why a process is not ready; empty when it is. Anybody may ask: what names hosts, users and databases is for the log. */
export async function notReady(
  { db, signal, ingest }: Needed,
  log: { warn(fields: object, message: string): void },
): Promise<string[]> {
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
  return [...reasons, ...(ingest?.notReady() ?? [])];
}
