/** What a process needs for its work. */
export interface Needed {
  db: { query(statement: { text: string }): Promise<unknown> };
  signal: { readonly listening: boolean };
  /** Null: events come by GraphQL alone, or to another process. */
  ingest: { notReady(): string[] } | null;
}

export interface Readiness {
  ready: boolean;
  /** Why it is not, and what is not as it should be meanwhile. */
  reasons: string[];
}

interface Log {
  warn(fields: object, message: string): void;
}

/**
 * Whether requests can be sent to a process. Without a broker or its connection for signals it answers them all the same,
 * and no other replica need do better: that is told, and is no reason to send none. Anybody may ask: what names hosts,
 * users and databases is for the log.
 */
export async function readinessOf({ db, signal, ingest }: Needed, log: Log): Promise<Readiness> {
  const ready = await answers(db, log);
  const reasons = [
    ...(ready ? [] : ['database: it does not answer, the log says why']),
    ...(signal.listening
      ? []
      : ['listener: not connected, changes of other replicas are seen within a second']),
    ...(ingest?.notReady() ?? []),
  ];
  return { ready, reasons };
}

async function answers(db: Needed['db'], log: Log): Promise<boolean> {
  try {
    await db.query({ text: 'select from runplane.installation' });
    return true;
  } catch (error) {
    log.warn(
      { error: error instanceof Error ? error.message : String(error) },
      'the database does not answer',
    );
    return false;
  }
}
