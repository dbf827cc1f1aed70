// Read-only (a standby, say); serialization, deadlock, lock not available; connection exceptions, resources, operator
// intervention (shutdown, cancelled statements).
const sqlStates = /^(25006|40001|40P01|55P03|08...|53...|57...)$/;
const systemCodes = /^(ECONN\w+|EPIPE|ETIMEDOUT|ENOTFOUND|EHOSTUNREACH|EAI_AGAIN)$/;
// The driver gives these no code.
const driverMessages =
  /Connection terminated|timeout exceeded when trying to connect|not queryable|Cannot use a pool after/;

/** Something that an answer depends on does not work now, and it is not the database. */
export class UnavailableError extends Error {
  override readonly name = 'UnavailableError';
}

/** Whether a statement failed because the database could not be reached or would not work now, whatever it said. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof UnavailableError) return true;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return sqlStates.test(code) || systemCodes.test(code) || driverMessages.test(error.message);
}
