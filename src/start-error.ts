import { ConfigurationError } from './config.ts';
import { EmbeddedPostgresError } from './db/embedded-postgres.ts';

/** Why a server did not start: a sentence that says what to do where a person can mend it, else the stack. */
export function explainStartError(error: unknown): string {
  if (error instanceof ConfigurationError || error instanceof EmbeddedPostgresError) return error.message;
  const { code, port } = error as { code?: string; port?: number };
  if (code === 'EADDRINUSE') {
    return `Port ${port} is in use. Stop what listens there, or set RUNPLANE_PORT to another port (0 is any free one).`;
  }
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
