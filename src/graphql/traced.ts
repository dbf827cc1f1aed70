import type { GraphQLContext } from './context.ts';

/** An input with the trace of the request that brought it. Most requests have none and leave it as it is. */
export const traced = <T extends object>(
  input: T,
  { traceparent = null }: GraphQLContext,
): T & { traceparent?: string } => (traceparent === null ? input : { ...input, traceparent });
