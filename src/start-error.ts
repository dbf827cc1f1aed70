import { ConfigurationError } from './config.ts';
import { EmbeddedPostgresError } from './db/embedded-postgres.ts';
import { errors } from './errors.ts';

// No such host, nobody there, no answer; wrong password, no such role, no such database.
const unreachable = /^(ECONN\w+|ENOTFOUND|ETIMEDOUT|EAI_AGAIN|EHOSTUNREACH|28P01|28000|3D000)$/;

/** Why a server did not start: a sentence that says what to do where a person can mend it, else the stack. */
export function explainStartError(error: unknown): string {
  if (error instanceof ConfigurationError) {
    return `${error.code}: the settings are wrong:\n${error.faults.map((fault) => `  - ${fault}`).join('\n')}`;
  }
  if (error instanceof EmbeddedPostgresError)
    return `${errors.DATA_DIRECTORY_UNUSABLE.code}: ${error.message}`;
  const { code = '', port } = error as { code?: string; port?: number };
  if (code === 'EADDRINUSE') {
    return `${errors.PORT_IN_USE.code}: Port ${port} is in use. Stop what listens there, or set RUNPLANE_PORT to another port (0 is any free one).`;
  }
  const message = error instanceof Error ? error.message || code : String(error);
  if (unreachable.test(code)) {
    return `${errors.DATABASE_UNREACHABLE.code}: no connection to DATABASE_URL: ${message}. Check its host, port, user and database.`;
  }
  return error instanceof Error ? (error.stack ?? message) : message;
}
