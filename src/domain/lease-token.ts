import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * The credential for one attempt: an HMAC of its id. Nothing is stored, any replica can check it, also after the lease
 * is gone, and a repeated claim gives the same token again.
 */
export const leaseToken = (secretKey: Buffer, attemptId: string): string =>
  createHmac('sha256', secretKey).update(attemptId).digest('base64url');

export function isLeaseToken(secretKey: Buffer, attemptId: string, token: string): boolean {
  const expected = Buffer.from(leaseToken(secretKey, attemptId));
  const given = Buffer.from(token);
  return expected.length === given.length && timingSafeEqual(expected, given);
}
