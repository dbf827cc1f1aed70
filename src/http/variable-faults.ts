import { type ExecutionResult, GraphQLError } from 'graphql';
import { withoutValues } from './without-values.ts';

/**
 * What is wrong with the variables of an operation, when that is why nothing of it was executed; null: it is not.
 * Nobody is told the values, and who did not sign in not what the schema has instead.
 */
export function findVariableFaults(
  result: Pick<ExecutionResult, 'data' | 'errors'>,
  hideSuggestions: boolean,
): GraphQLError[] | null {
  // Faults of fields have a path.
  if (!result.errors || 'data' in result || result.errors.some(({ path }) => path !== undefined)) return null;
  return result.errors.map(
    ({ message, nodes, source, positions }) =>
      new GraphQLError(
        withoutValues(hideSuggestions ? message.replace(/ Did you mean .+\?$/s, '') : message),
        {
          nodes,
          source,
          positions,
          extensions: { code: 'BAD_USER_INPUT' },
        },
      ),
  );
}
