import { type ExecutionResult, GraphQLError, type GraphQLSchema } from 'graphql';
import { withoutValues } from '../graphql/without-values.ts';
import { withAllowedValues } from './allowed-values.ts';

/**
 * What is wrong with the variables of an operation, when that is why nothing of it was executed; null: it is not.
 * Nobody is told the values, and who did not sign in not what the schema has instead.
 */
export function findVariableFaults(
  result: Pick<ExecutionResult, 'data' | 'errors'>,
  schema: GraphQLSchema,
  hideSuggestions: boolean,
): GraphQLError[] | null {
  // Faults of fields have a path.
  if (!result.errors || 'data' in result || result.errors.some(({ path }) => path !== undefined)) return null;
  return result.errors.map((error) => {
    const { nodes, source, positions } = error;
    const told = withoutValues(error);
    const message = hideSuggestions
      ? told.replace(/ Did you mean .+\?$/s, '')
      : withAllowedValues(told, schema);
    return new GraphQLError(message, { nodes, source, positions, extensions: { code: 'BAD_USER_INPUT' } });
  });
}
