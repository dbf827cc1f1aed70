import SchemaBuilder from '@pothos/core';
import type { GraphQLContext } from './context.ts';

export const builder = new SchemaBuilder<{
  Context: GraphQLContext;
  DefaultFieldNullability: false;
  Scalars: {
    ID: { Input: string; Output: string };
    DateTime: { Input: Date; Output: Date };
    JSON: { Input: NonNullable<unknown>; Output: unknown };
    SafeInt: { Input: number; Output: number };
    Decimal: { Input: string; Output: string };
    Cursor: { Input: string; Output: string };
  };
}>({ defaultFieldNullability: false });

builder.queryType({
  description:
    'Questions. They need the scope READ where they say nothing else; server and viewer need none.',
});
builder.mutationType({
  description:
    'Commands. Expected failures are members of the results; whatever committed is answered, even when a part of the answer cannot be read.',
});
builder.subscriptionType({
  description:
    'Streams of the change log: at least once, in order per object, without gaps. De-duplicate by id. Need the scope READ.',
});
