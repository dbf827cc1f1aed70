import type { Scope } from '../domain/credential.ts';
import type { GraphQLContext } from './context.ts';
import { lacksScope } from './errors.ts';
import type { Forbidden } from './problems.ts';

export const has = ({ viewer }: GraphQLContext, scope: Scope): boolean => viewer.scopes.includes(scope);

/** For questions: without the scope they are an error. */
export function need(context: GraphQLContext, scope: Scope): void {
  if (!has(context, scope)) throw lacksScope(scope);
}

/** For commands: without the scope they are refused with a value. */
export const refused = (context: GraphQLContext, scope: Scope): Forbidden | null =>
  has(context, scope) ? null : { kind: 'Forbidden', message: `This needs the scope ${scope}.`, scope };

/** What a success shows besides its flat fields: null without READ, so that what committed is answered all the same. */
export const ifReadable = <T>(
  context: GraphQLContext,
  load: () => Promise<T | null>,
): Promise<T | null> | null => (has(context, 'READ') ? load() : null);

/** Payloads and texts that may hold their contents: null without PAYLOAD_READ. */
export const ifPayload = <T>(context: GraphQLContext, value: () => T): T | null =>
  has(context, 'PAYLOAD_READ') ? value() : null;
