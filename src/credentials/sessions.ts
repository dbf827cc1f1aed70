import type { Database } from '../db/pool.ts';
import { transaction } from '../db/transaction.ts';
import type { Session, Viewer } from '../domain/credential.ts';
import { newUuid } from '../domain/ids.ts';
import { limits } from '../domain/limits.ts';
import { isSecret, newSecretToken, parseSecretToken, sessionPrefix } from '../domain/secret-token.ts';
import { ShortMemory } from './short-memory.ts';

const maxSeconds = 12 * 3600;

/** The credential that a session stands for. An external one is not kept, only whom it named. */
export type Holder =
  | { kind: 'apiToken'; id: string }
  | { kind: 'adminToken'; mark: string }
  | { kind: 'external'; viewer: Viewer };

/** Given the secret of the session, which is not stored: what is told apart by it cannot be guessed from what is. */
export type HolderOf = (sessionSecret: string) => Holder;

interface SessionRow {
  secretHash: Buffer;
  holder: Holder;
  secondsLeft: number;
}

export class Sessions {
  readonly #db: Database;
  readonly #rows: ShortMemory<SessionRow>;

  constructor(db: Database, clock: () => number) {
    this.#db = db;
    this.#rows = new ShortMemory({ read: (id) => readSession(db, id), clock });
  }

  /** Ends with the credential, which has so many seconds left, after 12 hours, and when its holder opened many others. */
  async open(holderOf: HolderOf, secondsLeft: number | null): Promise<Session> {
    const id = newUuid();
    const { text, secret, secretHash } = newSecretToken(sessionPrefix, id);
    const seconds = Math.min(maxSeconds, Math.max(0, secondsLeft ?? maxSeconds));
    await transaction(this.#db, async (tx) => {
      const holder = JSON.stringify(holderOf(secret));
      await tx.query({ text: deleteOverSql });
      await tx.query({ text: deleteOldestSql, values: [holder, limits.sessionsOfToken] });
      await tx.query({ text: insertSql, values: [id, secretHash, holder, seconds] });
    });
    return { cookie: text, seconds: Math.floor(seconds) };
  }

  /** The session of a cookie, as long as it is there. */
  async find(cookie: string): Promise<{ id: string; secret: string; holder: Holder } | null> {
    const given = parseSecretToken(sessionPrefix, cookie);
    const row = given && (await this.#rows.get(given.uuid));
    return row && isSecret(given.secret, row.secretHash)
      ? { id: given.uuid, secret: given.secret, holder: row.holder }
      : null;
  }

  async stands(id: string): Promise<boolean> {
    return (await this.#rows.get(id)) !== null;
  }

  surelyStands(id: string): boolean {
    return this.#rows.remembered(id) !== null;
  }

  async close(cookie: string): Promise<void> {
    const session = await this.find(cookie);
    if (!session) return;
    await this.#db.query({ text: 'delete from runplane.sessions where id = $1', values: [session.id] });
    this.#rows.forget(session.id);
  }
}

async function readSession(db: Database, id: string): Promise<SessionRow | null> {
  const { rows } = await db.query<SessionRow & Record<string, unknown>>({
    name: 'session',
    text: `
with now as materialized (select runplane.clock() as at)
select s.secret_hash as "secretHash", s.holder, extract(epoch from s.expires_at - now.at)::float8 as "secondsLeft"
  from runplane.sessions s cross join now where s.id = $1 and s.expires_at > now.at`,
    values: [id],
  });
  return rows[0] ?? null;
}

const insertSql = `
with now as materialized (select runplane.clock() as at)
insert into runplane.sessions (id, secret_hash, holder, created_at, expires_at)
select $1, $2, $3, now.at, now.at + $4::float8 * interval '1 second' from now`;

/** Some of those that are over, so that as many go as come. */
const deleteOverSql = `
with now as materialized (select runplane.clock() as at)
delete from runplane.sessions where id in (
  select s.id from runplane.sessions s cross join now
   where s.expires_at <= now.at order by s.id limit 100 for update of s skip locked)`;

/** Makes room for one more of a holder. Those of the admin token are each of a holder of its own. */
const deleteOldestSql = `
delete from runplane.sessions where id in (
  select s.id from runplane.sessions s
   where s.id in (select o.id from runplane.sessions o where o.holder = $1 order by o.id desc offset $2::int - 1)
   order by s.id for update of s skip locked)`;
