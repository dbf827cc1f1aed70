import { type ExecutionResult, GraphQLError, type OperationDefinitionNode, OperationTypeNode } from 'graphql';
import { isForbidden } from '../graphql/errors.ts';

/**
 * Why a question or stream has no answer for its caller: each of its fields was refused, or one that is never null was.
 * Null: something is answered. Commands refuse with a value.
 */
export function findRefusal(
  { operation }: OperationDefinitionNode,
  { data, errors = [] }: Pick<ExecutionResult, 'data' | 'errors'>,
): GraphQLError[] | null {
  const fields = data ? Object.keys(data).length : 1;
  if (operation === OperationTypeNode.MUTATION || errors.length === 0 || errors.length < fields) return null;
  if (!errors.every((error) => isForbidden(error) && error.path?.length === 1)) return null;
  return errors.map(({ message, nodes, extensions }) => new GraphQLError(message, { nodes, extensions }));
}
