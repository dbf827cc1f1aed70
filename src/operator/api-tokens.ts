import type { Database, Queryable } from '../db/pool.ts';
import { transaction } from '../db/transaction.ts';
import { isBounded, type Restrictions, restrictedScopes, type Scope } from '../domain/credential.ts';
import { newUuid, toPublicId } from '../domain/ids.ts';
import { limits } from '../domain/limits.ts';
import {
  type InvalidInput,
  InvalidInputError,
  isInvalidInput,
  notFound,
  parsed,
} from '../domain/problems.ts';
import { parseTime } from '../domain/scalars.ts';
import { apiTokenPrefix, newSecretToken } from '../domain/secret-token.ts';
import { parseName } from '../domain/text.ts';
import { topicFault } from '../domain/topic.ts';
import { appendAudit } from './audit.ts';
import type { Actor, DeleteOutcome } from './types.ts';

export interface CreateApiTokenInput {
  name: string;
  scopes: readonly Scope[];
  agents?: readonly string[] | null;
  jobs?: readonly string[] | null;
  topics?: readonly string[] | null;
  expiresAt?: Date | null;
}
export interface CreateApiTokenSuccess {
  kind: 'CreateApiTokenSuccess';
  /** UUID of the token. */
  id: string;
  /** The token itself, which nobody can ask for again. */
  secret: string;
}
export type CreateApiTokenOutcome = CreateApiTokenSuccess | InvalidInput;

/** Credentials of clients. Whether the caller may give what it gives is checked before. */
export interface ApiTokens {
  create(input: CreateApiTokenInput, actor: Actor): Promise<CreateApiTokenOutcome>;
  /** By UUID. A token that was revoked before stays as it is. */
  revoke(id: string, actor: Actor): Promise<DeleteOutcome>;
}

export interface ApiTokensContext {
  db: Database;
  /** Called after the commit. */
  onRevoked: (id: string) => void;
}

interface TokenSpec extends Restrictions {
  name: string;
  scopes: readonly Scope[];
  expiresAt: Date | null;
}

export const createApiTokens = (context: ApiTokensContext): ApiTokens => ({
  create: (input, actor) => createToken(context, input, actor),
  revoke: (id, actor) => revokeToken(context, id, actor),
});

async function createToken(
  { db }: ApiTokensContext,
  input: CreateApiTokenInput,
  actor: Actor,
): Promise<CreateApiTokenOutcome> {
  const spec = parsed(() => parseToken(input));
  if (isInvalidInput(spec)) return spec;
  const id = newUuid();
  const token = newSecretToken(apiTokenPrefix, id);
  try {
    await transaction(db, (tx) => insertToken(tx, id, token.secretHash, spec, actor));
  } catch (error) {
    if (error instanceof InvalidInputError) return error.problem;
    throw error;
  }
  return { kind: 'CreateApiTokenSuccess', id, secret: token.text };
}

async function insertToken(
  tx: Queryable,
  id: string,
  secretHash: Buffer,
  spec: TokenSpec,
  actor: Actor,
): Promise<void> {
  const { name, scopes, agents, jobs, topics, expiresAt } = spec;
  const { rowCount } = await tx.query({
    text: `
with now as materialized (select runplane.clock() as at)
insert into runplane.api_tokens (id, name, secret_hash, scopes, agents, jobs, topics, created_at, expires_at)
select $1, $2, $3, $4, $5, $6, $7, now.at, $8 from now where $8::timestamptz is null or $8 > now.at`,
    values: [id, name, secretHash, scopes, agents, jobs, topics, expiresAt],
  });
  if (rowCount === 0) throw new InvalidInputError('expiresAt', 'expiresAt is in the past.');
  // The secret is in no form part of what is recorded.
  await appendAudit(tx, {
    actor,
    action: 'api_token.create',
    target: toPublicId('tok', id),
    before: null,
    after: { name, scopes, agents, jobs, topics, expiresAt },
  });
}

async function revokeToken(
  { db, onRevoked }: ApiTokensContext,
  id: string,
  actor: Actor,
): Promise<DeleteOutcome> {
  const target = toPublicId('tok', id);
  const found = await transaction(db, async (tx) => {
    const { rows } = await tx.query<{ revokedAt: Date | null }>({
      text: 'select revoked_at as "revokedAt" from runplane.api_tokens where id = $1 for no key update',
      values: [id],
    });
    if (!rows[0] || rows[0].revokedAt) return rows.length > 0;
    const { rows: revoked } = await tx.query<{ revokedAt: Date }>({
      text: `
with now as materialized (select runplane.clock() as at)
update runplane.api_tokens t set revoked_at = now.at from now where t.id = $1 returning t.revoked_at as "revokedAt"`,
      values: [id],
    });
    const after = { revokedAt: revoked[0]?.revokedAt ?? null };
    await appendAudit(tx, { actor, action: 'api_token.revoke', target, before: { revokedAt: null }, after });
    return true;
  });
  if (!found) return notFound('API token', target);
  onRevoked(id);
  return { kind: 'DeleteSuccess', id };
}

function parseToken(input: CreateApiTokenInput): TokenSpec {
  if (input.scopes.length === 0)
    throw new InvalidInputError('scopes', 'scopes is empty: a token without any can do nothing.');
  const pointless = (['agents', 'jobs', 'topics'] as const).find(
    (kind) => input[kind] != null && !isBounded(kind, input.scopes),
  );
  if (pointless) {
    throw new InvalidInputError(
      pointless,
      `${pointless} restricts ${restrictedScopes[pointless]}, which this token does not have.`,
    );
  }
  return {
    name: parseName(input.name, 'name'),
    scopes: [...new Set(input.scopes)],
    agents: parseRestriction(input.agents, 'agents', parseName),
    jobs: parseRestriction(input.jobs, 'jobs', parseName),
    topics: parseRestriction(input.topics, 'topics', parsePattern),
    expiresAt: parseTime(input.expiresAt, 'expiresAt'),
  };
}

/** None is null; an empty list would be a scope that allows nothing. */
function parseRestriction(
  given: readonly string[] | null | undefined,
  field: string,
  parse: (entry: string, field: string) => string,
): string[] | null {
  if (given == null) return null;
  if (given.length === 0 || given.length > limits.restrictions) {
    throw new InvalidInputError(
      field,
      `${field} has ${given.length} entries; 1 to ${limits.restrictions} are allowed.`,
    );
  }
  return [...new Set(given.map((entry, i) => parse(entry, `${field}[${i}]`)))];
}

function parsePattern(entry: string, field: string): string {
  const pattern = entry.normalize('NFC');
  const fault = topicFault(pattern, true);
  if (fault) throw new InvalidInputError(field, `${field} ${fault}.`);
  return pattern;
}
