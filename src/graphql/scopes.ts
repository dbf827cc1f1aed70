import type { Scope } from '../domain/credential.ts';
import type { Forbidden } from '../domain/problems.ts';
import type { GraphQLContext } from './context.ts';
import { lacksScope } from './errors.ts';

export const has = ({ viewer }: GraphQLContext, scope: Scope): boolean => viewer.scopes.includes(scope);

/** For questions: without the scope they are an error. */
export function need(context: GraphQLContext, scope: Scope): void {
  if (!has(context, scope)) throw lacksScope(scope);
}

/** For commands: without the scope they are refused with a value. */
export const refused = (context: GraphQLContext, scope: Scope): Forbidden | null =>
  has(context, scope) ? null : forbidden(scope, `This needs the scope ${scope}.`);

export const forbidden = (scope: Scope, message: string): Forbidden => ({
  kind: 'Forbidden',
  message,
  scope,
});

/** Payloads and texts that may hold their contents: null without PAYLOAD_READ. */
export const ifPayload = <T>(context: GraphQLContext, value: () => T): T | null =>
  has(context, 'PAYLOAD_READ') ? value() : null;
