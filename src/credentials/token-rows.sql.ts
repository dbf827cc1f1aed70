import type { Queryable } from '../db/pool.ts';
import type { Restrictions, Scope } from '../domain/credential.ts';

export interface TokenRow extends Restrictions {
  id: string;
  name: string;
  secretHash: Buffer;
  scopes: Scope[];
  /** Until it expires; null: never. */
  secondsLeft: number | null;
}

/** A token that is good now. */
export async function readToken(db: Queryable, id: string): Promise<TokenRow | null> {
  const { rows } = await db.query<TokenRow & Record<string, unknown>>({
    name: 'api-token',
    text: `
with now as materialized (select runplane.clock() as at)
select t.id, t.name, t.secret_hash as "secretHash", t.scopes, t.agents, t.jobs, t.topics,
       extract(epoch from t.expires_at - now.at)::float8 as "secondsLeft"
  from runplane.api_tokens t cross join now
 where t.id = $1 and t.revoked_at is null and (t.expires_at is null or t.expires_at > now.at)`,
    values: [id],
  });
  return rows[0] ?? null;
}

/** Several replicas may see the same tokens used: each is written by whoever comes first, once in a minute. */
export async function writeLastUsed(db: Queryable, ids: readonly string[]): Promise<void> {
  await db.query({
    text: `
with now as materialized (select runplane.clock() as at),
due as (
  select t.id from runplane.api_tokens t cross join now
   where t.id = any($1) and (t.last_used_at is null or t.last_used_at <= now.at - interval '1 minute')
   order by t.id for no key update of t skip locked)
update runplane.api_tokens t set last_used_at = now.at from due cross join now where t.id = due.id`,
    values: [ids],
  });
}
