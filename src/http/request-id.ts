import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';

const header = 'x-request-id';

/** The id of a request in the audit log, in errors and in the log; its answer has it as a header. */
export function requestIdOf(response: ServerResponse): string {
  const given = response.getHeader(header);
  if (typeof given === 'string') return given;
  const id = randomUUID();
  if (!response.headersSent) response.setHeader(header, id);
  return id;
}
