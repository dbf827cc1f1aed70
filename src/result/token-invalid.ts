import type { LeaseTokenInvalid } from '../domain/problems.ts';

export const tokenInvalid: LeaseTokenInvalid = {
  kind: 'LeaseTokenInvalid',
  message: 'The lease token does not belong to this attempt, or there is no such attempt.',
};
