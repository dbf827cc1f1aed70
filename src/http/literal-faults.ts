import {
  type ASTNode,
  type ASTVisitFn,
  type ASTVisitor,
  GraphQLError,
  Kind,
  type ValidationContext,
  ValuesOfCorrectTypeRule,
} from 'graphql';
import { withoutValues } from '../graphql/without-values.ts';

type Parents = readonly (ASTNode | readonly ASTNode[])[];

/**
 * GraphQL's rule for literals, whose faults tell neither the argument nor the field that they are in, and those of our
 * scalars not even where in the document. Here they tell both, as faults of variables do.
 */
export function literalsOfCorrectType(context: ValidationContext): ASTVisitor {
  let place = { node: undefined as ASTNode | undefined, name: '' };
  const told = Object.create(context, {
    reportError: {
      value: (error: GraphQLError) => {
        const reason = withoutValues(error);
        // Whatever is said of a field names it.
        const message =
          place.name === '' || reason.startsWith('Field "') ? reason : `${place.name}; ${reason}`;
        context.reportError(new GraphQLError(message, { nodes: error.nodes ?? place.node }));
      },
    },
  }) as ValidationContext;
  const visitor = ValuesOfCorrectTypeRule(told) as Record<string, ASTVisitFn<ASTNode>>;
  const placed = Object.entries(visitor).map(([kind, check]): [string, ASTVisitFn<ASTNode>] => [
    kind,
    (node, key, parent, path, ancestors) => {
      place = { node, name: placeOf(parent ? [...ancestors, parent] : ancestors, path) };
      return check(node, key, parent, path, ancestors) as unknown;
    },
  ]);
  return Object.fromEntries(placed);
}

/** What a value in a document is given for. */
function placeOf(parents: Parents, path: readonly (string | number)[]): string {
  let what = '';
  let within = '';
  for (const [i, parent] of parents.entries()) {
    if (!('kind' in parent)) continue;
    if (parent.kind === Kind.ARGUMENT)
      [what, within] = [`Argument "${parent.name.value}"`, parent.name.value];
    if (parent.kind === Kind.VARIABLE_DEFINITION)
      [what, within] = [`Default of "$${parent.variable.name.value}"`, parent.variable.name.value];
    if (parent.kind === Kind.OBJECT_FIELD) within += `.${parent.name.value}`;
    if (parent.kind === Kind.LIST) within += `[${path[i + 1]}]`;
  }
  if (what === '') return '';
  const isWhole = /^\w+$/.test(within);
  return `${what} got invalid value${isWhole ? '' : ` at "${within}"`}`;
}
