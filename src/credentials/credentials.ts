import { createHmac } from 'node:crypto';
import type { Database } from '../db/pool.ts';
import { asTransactions } from '../db/transaction.ts';
import {
  type Authority,
  allScopes,
  anonymous,
  type Credentials,
  type Session,
  unrestricted,
  type Viewer,
} from '../domain/credential.ts';
import { toPublicId } from '../domain/ids.ts';
import { apiTokenPrefix, hashSecret, isSecret, parseSecretToken } from '../domain/secret-token.ts';
import { type ExternalIssuer, type ExternalToken, ExternalTokens } from './external-tokens.ts';
import { LastUsed } from './last-used.ts';
import { type Holder, type HolderOf, Sessions } from './sessions.ts';
import { ShortMemory } from './short-memory.ts';
import { readToken, type TokenRow, writeLastUsed } from './token-rows.sql.ts';

export interface AuthenticationOptions {
  /** May do everything, to make the first token. */
  adminToken: string | null;
  external: ExternalIssuer | null;
}

export interface CredentialStoreOptions extends AuthenticationOptions {
  db: Database;
  onError: (error: unknown) => void;
  /** A clock that does not jump, in milliseconds. */
  clock?: () => number;
}

/** An authority, with what a session would have to remember of it. */
interface Held extends Authority {
  holderOf: HolderOf;
  secondsLeft: number | null;
}

const admin: Viewer = Object.freeze({
  name: 'admin',
  scopes: allScopes,
  signedIn: true,
  tokenId: 'admin',
  restrictions: unrestricted,
});

/** Every kind of credential: API tokens, the admin token, tokens of an identity provider, and sessions of any of them. */
export class CredentialStore implements Credentials {
  readonly none = anonymous;
  readonly #adminToken: string | null;
  readonly #tokens: ShortMemory<TokenRow>;
  readonly #external: ExternalTokens | null;
  readonly #sessions: Sessions;
  readonly #lastUsed: LastUsed;

  constructor({
    db,
    adminToken,
    external,
    onError,
    clock = () => performance.now(),
  }: CredentialStoreOptions) {
    this.#adminToken = adminToken;
    this.#tokens = new ShortMemory({ read: (id) => readToken(db, id), clock });
    this.#external = external && new ExternalTokens(external);
    this.#sessions = new Sessions(db, clock);
    this.#lastUsed = new LastUsed({
      write: (ids) => writeLastUsed(asTransactions(db), ids),
      clock,
      onError,
    });
  }

  ofToken(token: string): Promise<Held | null> {
    const apiToken = parseSecretToken(apiTokenPrefix, token);
    if (this.#adminToken !== null && isSecret(token, hashSecret(this.#adminToken)))
      return Promise.resolve(adminAuthority(this.#adminToken));
    if (apiToken) return this.#ofApiToken(apiToken.uuid, apiToken.secret);
    return this.#external && looksSigned(token)
      ? this.#ofExternal(this.#external, token)
      : Promise.resolve(null);
  }

  async ofSession(cookie: string): Promise<Authority | null> {
    const session = await this.#sessions.find(cookie);
    const authority = session && (await this.#ofHolder(session.holder, session.secret));
    return (
      authority && {
        viewer: authority.viewer,
        stands: async () => (await this.#sessions.stands(session.id)) && authority.stands(),
        surelyStands: () => this.#sessions.surelyStands(session.id) && authority.surelyStands(),
      }
    );
  }

  async openSession(token: string): Promise<Session | null> {
    const authority = await this.ofToken(token);
    return authority && this.#sessions.open(authority.holderOf, authority.secondsLeft);
  }

  closeSession(cookie: string): Promise<void> {
    return this.#sessions.close(cookie);
  }

  /** A token was revoked here: from now on it is refused here. Other replicas believe in it for 30 s at most. */
  forget(tokenId: string): void {
    this.#tokens.forget(tokenId);
  }

  stop(): Promise<void> {
    return this.#lastUsed.flush();
  }

  async #ofApiToken(id: string, secret: string | null): Promise<Held | null> {
    const row = await this.#tokens.get(id);
    if (!row || (secret !== null && !isSecret(secret, row.secretHash))) return null;
    this.#lastUsed.touch(id);
    const { name, scopes, agents, jobs, topics, secondsLeft } = row;
    return {
      viewer: {
        name,
        scopes,
        signedIn: true,
        tokenId: toPublicId('tok', id),
        restrictions: { agents, jobs, topics },
      },
      stands: async () => {
        const stands = (await this.#tokens.get(id)) !== null;
        if (stands) this.#lastUsed.touch(id);
        return stands;
      },
      surelyStands: () => {
        const stands = this.#tokens.remembered(id) !== null;
        if (stands) this.#lastUsed.touch(id);
        return stands;
      },
      holderOf: () => ({ kind: 'apiToken', id }),
      secondsLeft,
    };
  }

  async #ofExternal(external: ExternalTokens, token: string): Promise<Held | null> {
    const checked = await external.check(token);
    return checked && externalAuthority(checked);
  }

  async #ofHolder(holder: Holder, sessionSecret: string): Promise<Authority | null> {
    switch (holder.kind) {
      case 'apiToken':
        return this.#ofApiToken(holder.id, null);
      case 'adminToken': {
        const isSame =
          this.#adminToken !== null &&
          isSecret(markOf(this.#adminToken, sessionSecret), hashSecret(holder.mark));
        return isSame ? adminAuthority(this.#adminToken) : null;
      }
      case 'external':
        // The session ends when the token that it was opened with would have.
        return { viewer: holder.viewer, stands: () => Promise.resolve(true), surelyStands: () => true };
    }
  }
}

/** Tells whether the admin token is the one that a session was opened with. */
const markOf = (adminToken: string, sessionSecret: string): string =>
  createHmac('sha256', adminToken).update(sessionSecret).digest('hex');

/** It is valid as long as the process runs with it. */
const adminAuthority = (adminToken: string): Held => ({
  viewer: admin,
  stands: () => Promise.resolve(true),
  surelyStands: () => true,
  holderOf: (sessionSecret) => ({ kind: 'adminToken', mark: markOf(adminToken, sessionSecret) }),
  secondsLeft: null,
});

const looksSigned = (token: string): boolean => /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token);

function externalAuthority({ viewer, expiresAt }: ExternalToken): Held {
  const secondsLeft = (): number => expiresAt - Date.now() / 1000;
  return {
    viewer,
    stands: () => Promise.resolve(secondsLeft() > 0),
    surelyStands: () => secondsLeft() > 0,
    holderOf: () => ({ kind: 'external', viewer }),
    secondsLeft: secondsLeft(),
  };
}
