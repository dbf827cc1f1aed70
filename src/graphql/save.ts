import type { Scope } from '../domain/credential.ts';
import type { Forbidden } from '../domain/problems.ts';
import type { Actor, SaveSuccess } from '../operator/types.ts';
import type { Load } from '../read/batch.ts';
import type { Loaders } from '../read/loaders.ts';
import { builder } from './builder.ts';
import type { GraphQLContext } from './context.ts';
import { ForbiddenRef, IllegalStateRef, InvalidInputRef, NotFoundRef } from './problems.ts';
import { refused } from './scopes.ts';

type NodeRef<Row> = ReturnType<typeof builder.objectRef<Row>>;
type Noun = 'job' | 'agent' | 'throttle' | 'queue' | 'pool' | 'route';
type Capitalized<Text extends string> = Text extends `${infer First}${infer Rest}`
  ? `${Uppercase<First>}${Rest}`
  : Text;

/** What ifVersion of an input says. */
export const ifVersion = (noun: Noun): string =>
  `Refuse it unless the ${noun} has this version; 0: unless there is none of its name. Default: whatever version it has.`;

/** The result of saving an object: its name and version, and the object itself for those who may read. */
export function saveResult<N extends Noun, Row extends { id: string }>(
  noun: N,
  node: NodeRef<Row>,
  loaderOf: (loaders: Loaders) => Load<Row>,
) {
  type Kind = `Save${Capitalized<N>}Success`;
  const title = noun.charAt(0).toUpperCase() + noun.slice(1);
  const success = builder.objectRef<SaveSuccess<Kind>>(`Save${title}Success`);
  success.implement({
    description: `The ${noun} is as it was given; version is the old one when nothing changed.`,
    fields: (t) => ({
      name: t.string({ description: 'Its name.', resolve: (saved) => saved.name }),
      version: t.int({
        description: 'Raised by one when something changed.',
        resolve: (saved) => saved.version,
      }),
      [noun]: t.field({
        type: node,
        nullable: true,
        description: `The ${noun} as it is now. Needs READ, else null.`,
        resolve: (saved, _, context) => loaderOf(context.loaders)(saved.id) as never,
      }),
    }),
  });
  return builder.unionType(`Save${title}Result`, {
    description: `What became of saving the ${noun}.`,
    types: [success, InvalidInputRef, NotFoundRef, IllegalStateRef, ForbiddenRef],
    resolveType: ({ kind }) => kind,
  });
}

/** Runs a change as the caller, or refuses it for want of a scope. */
export async function change<Outcome>(
  context: GraphQLContext,
  scope: Scope,
  run: (actor: Actor) => Promise<Outcome>,
): Promise<Outcome | Forbidden> {
  return refused(context, scope) ?? run({ name: context.viewer.name, requestId: context.requestId });
}
