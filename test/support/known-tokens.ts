import {
  type Authority,
  anonymous,
  authenticationOff,
  type Credentials,
} from '../../src/domain/credential.ts';

const { none: local } = authenticationOff;
const authorities = new Map<string, Authority>(
  ['tok_one', 'tok_two'].map((tokenId) => [tokenId, { ...local, viewer: { ...local.viewer, tokenId } }]),
);
const authorityOf = (token: string): Promise<Authority | null> =>
  Promise.resolve(authorities.get(token) ?? null);

/** Two tokens that may do everything, each its own id; a session is the token that it holds. */
export const knownTokens: Credentials = {
  none: anonymous,
  ofToken: authorityOf,
  ofSession: authorityOf,
  openSession: () => Promise.resolve(null),
  closeSession: () => Promise.resolve(),
};

export const bearerOne = { authorization: 'Bearer tok_one' };
export const bearerTwo = { authorization: 'Bearer tok_two' };
export const sessionOne = { cookie: 'runplane_session=tok_one' };
