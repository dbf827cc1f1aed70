import {
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLError,
  type GraphQLField,
  type GraphQLSchema,
  isNonNullType,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  type SelectionSetNode,
} from 'graphql';
import type { Scope, Viewer } from '../domain/credential.ts';
import type { GraphQLContext } from './context.ts';
import { lacksScope } from './errors.ts';
import { scopeOfRoot } from './guards.ts';

interface RootField {
  node: FieldNode;
  /** Null: of introspection. */
  field: GraphQLField<unknown, GraphQLContext> | null;
  /** A directive may leave it out. */
  isConditional: boolean;
}

/**
 * Why a valid question or stream has no answer for this caller: each of its fields needs a scope that they lack, or one
 * does that is never null. Null: something of it is answered. Commands refuse with a value.
 */
export function findLackedScopes(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  { scopes }: Viewer,
): GraphQLError[] | null {
  if (operation.operation === OperationTypeNode.MUTATION) return null;
  const lacked = ({ field }: RootField): Scope | null => {
    const scope = field && scopeOfRoot(field);
    return scope === null || scopes.includes(scope) ? null : scope;
  };
  const asked = [...rootFields(schema, document, operation)];
  const forbidden = asked.filter((one) => lacked(one) !== null);
  const takesAll = ({ field, isConditional }: RootField): boolean =>
    field !== null && isNonNullType(field.type) && !isConditional;
  if (forbidden.length < asked.length && !forbidden.some(takesAll)) return null;
  return forbidden.map((one) => lacksScope(lacked(one) as Scope, one.node));
}

function* rootFields(
  schema: GraphQLSchema,
  { definitions }: DocumentNode,
  operation: OperationDefinitionNode,
): Generator<RootField> {
  const fields = schema.getRootType(operation.operation)?.getFields() ?? {};
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of definitions)
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);

  function* within({ selections }: SelectionSetNode, mayBeLeftOut: boolean): Generator<RootField> {
    for (const selection of selections) {
      const isConditional = mayBeLeftOut || hasCondition(selection.directives);
      if (selection.kind === Kind.FIELD) {
        yield { node: selection, field: fields[selection.name.value] ?? null, isConditional };
        continue;
      }
      const fragment =
        selection.kind === Kind.FRAGMENT_SPREAD ? fragments.get(selection.name.value) : selection;
      if (fragment) yield* within(fragment.selectionSet, isConditional);
    }
  }
  yield* within(operation.selectionSet, false);
}

const hasCondition = (directives: readonly DirectiveNode[] = []): boolean =>
  directives.some(({ name }) => name.value === 'skip' || name.value === 'include');
