import { createRemoteJWKSet, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { allScopes, type Scope, unrestricted, type Viewer } from '../domain/credential.ts';
import { UnavailableError } from '../domain/unavailable.ts';

export interface ExternalIssuer {
  /** As it stands in the tokens; below it lies /.well-known/openid-configuration. */
  issuer: string;
  audience: string;
  /** The claim that has the scopes. */
  scopeClaim: string;
}

export interface ExternalToken {
  viewer: Viewer;
  /** In seconds since 1970, by the issuer's clock. */
  expiresAt: number;
}

/** Signatures that a public key checks: with others, whoever can check a token could make one. */
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];
const clockToleranceSeconds = 5;
const timeoutMs = 5_000;

/** Checks tokens that an identity provider signed. Its keys are fetched when the first token comes, and kept. */
export class ExternalTokens {
  readonly #options: ExternalIssuer;
  #keys: Promise<JWTVerifyGetKey> | null = null;

  constructor(options: ExternalIssuer) {
    this.#options = options;
  }

  /** Null: it is not a token of the issuer for us, or not valid now. */
  async check(token: string): Promise<ExternalToken | null> {
    const { issuer, audience, scopeClaim } = this.#options;
    try {
      const { payload } = await jwtVerify(token, await this.#getKeys(), {
        issuer,
        audience,
        algorithms,
        clockTolerance: clockToleranceSeconds,
        requiredClaims: ['sub', 'exp'],
      });
      const { sub = '', exp = 0 } = payload;
      return {
        viewer: {
          name: sub,
          scopes: scopesIn(payload, scopeClaim),
          signedIn: true,
          tokenId: `external:${sub}`,
          restrictions: unrestricted,
        },
        expiresAt: exp,
      };
    } catch (error) {
      if (error instanceof errors.JOSEError && !isOfIssuer(error)) return null;
      throw new UnavailableError(`The identity provider does not answer as it should: ${String(error)}`);
    }
  }

  /** Found once; a failure is tried again by the next token. */
  #getKeys(): Promise<JWTVerifyGetKey> {
    this.#keys ??= findKeys(this.#options.issuer).catch((error: unknown) => {
      this.#keys = null;
      throw error;
    });
    return this.#keys;
  }
}

/** What went wrong with the keys, not with the token. */
const isOfIssuer = ({ code }: errors.JOSEError): boolean =>
  ['ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID', 'ERR_JOSE_GENERIC'].includes(code);

async function findKeys(issuer: string): Promise<JWTVerifyGetKey> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) });
  if (!response.ok) throw new Error(`${url} answers ${response.status}`);
  const found = (await response.json()) as { issuer?: unknown; jwks_uri?: unknown };
  if (found.issuer !== issuer || typeof found.jwks_uri !== 'string') {
    throw new Error(`${url} is of another issuer, or without jwks_uri`);
  }
  // Keys are kept for 10 minutes, and fetched again for a key that is not among them, at most every 30 s.
  return createRemoteJWKSet(new URL(found.jwks_uri), { timeoutDuration: timeoutMs });
}

/** The scopes in a claim, a list or words in a text: READ, or runplane:read where it is one of many products' scopes. */
function scopesIn(payload: JWTPayload, claim: string): Scope[] {
  const value = payload[claim];
  const words = typeof value === 'string' ? value.split(' ') : Array.isArray(value) ? value : [];
  const names = new Set(
    words
      .filter((word) => typeof word === 'string')
      .map((word) => word.replace(/^runplane:/, '').toUpperCase()),
  );
  return allScopes.filter((scope) => names.has(scope));
}
