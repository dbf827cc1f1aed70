import type { AuthenticationOptions } from '../../src/credentials/credentials.ts';
import type { CreateApiTokenInput } from '../../src/operator/api-tokens.ts';
import { startTestServer, type TestServer, type TestServerOptions } from './server.ts';

export const adminToken = 'the-token-of-the-administrator';

/** Data of an answer: JSON, whose form the test itself checks. */
type Answer = ReturnType<typeof JSON.parse>;

export interface Reply {
  status: number;
  headers: Headers;
  body: { data?: Answer; errors?: { message: string; extensions: Record<string, unknown> }[] };
}

export interface GuardedServer extends TestServer {
  /** Posts an operation with these headers and no others. */
  send(query: string, headers?: Record<string, string>, variables?: object): Promise<Reply>;
  /** The data of an operation that a token may do. */
  as(token: string, query: string, variables?: object): Promise<Answer>;
  /** A new token. */
  token(input: Partial<CreateApiTokenInput>): Promise<{ id: string; secret: string }>;
  revoke(id: string): Promise<void>;
}

export const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });

/** A server that asks for credentials. */
export async function startGuardedServer(
  authentication: Partial<AuthenticationOptions> = {},
  options: TestServerOptions = {},
): Promise<GuardedServer> {
  const server = await startTestServer({
    ...options,
    authentication: { adminToken, external: null, ...authentication },
  });
  const send: GuardedServer['send'] = async (query, headers = {}, variables = {}) => {
    const response = await fetch(server.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ query, variables }),
    });
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as Reply['body'],
    };
  };
  const as: GuardedServer['as'] = async (token, query, variables) => {
    const { body } = await send(query, bearer(token), variables);
    if (body.errors) throw new Error(JSON.stringify(body.errors));
    return body.data;
  };
  return {
    ...server,
    send,
    as,
    token: async (input) => {
      const { createApiToken: created } = await as(
        adminToken,
        `mutation($input: CreateApiTokenInput!) { createApiToken(input: $input) {
           ... on CreateApiTokenSuccess { secret token { id } } ... on Problem { message } } }`,
        { input: { name: 'test', scopes: ['READ'], ...input } },
      );
      if (!created.secret) throw new Error(created.message);
      return { id: created.token.id, secret: created.secret };
    },
    revoke: async (id) => {
      const { revokeApiToken } = await as(
        adminToken,
        'mutation($id: ID!) { revokeApiToken(id: $id) { __typename } }',
        { id },
      );
      if (revokeApiToken.__typename !== 'DeleteSuccess') throw new Error(revokeApiToken.__typename);
    },
  };
}
