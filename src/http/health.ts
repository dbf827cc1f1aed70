import type { IncomingMessage } from 'node:http';
import type { HorizonStall } from '../changelog/horizon-watch.ts';
import { type AdmissionOptions, admit } from './admission.ts';
import { HttpError } from './http-error.ts';

export interface Health {
  version: string;
  uptimeSeconds: number;
  horizonStall: HorizonStall | null;
}

/**
 * How the server is. Anybody is told that the horizon of the change log stands still; who holds it back names users and
 * databases of others, which is for those who may read.
 */
export async function answerHealth(
  request: IncomingMessage,
  { horizonStall, ...health }: Health,
  admission: AdmissionOptions,
): Promise<object> {
  const { seconds, blocker } = horizonStall ?? {};
  const named = horizonStall !== null && (await mayRead(request, admission));
  return { status: 'ok', ...health, horizonStall: horizonStall && { seconds, ...(named && { blocker }) } };
}

/** Whoever is refused is answered all the same, with less. */
async function mayRead(request: IncomingMessage, admission: AdmissionOptions): Promise<boolean> {
  try {
    const { viewer } = await admit(request, admission);
    return viewer.scopes.includes('READ');
  } catch (error) {
    if (error instanceof HttpError) return false;
    throw error;
  }
}
