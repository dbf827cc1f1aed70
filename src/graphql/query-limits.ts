import { type DocumentNode, GraphQLError, type GraphQLSchema, Kind, visit } from 'graphql';
import { limits } from '../domain/limits.ts';
import { OperationMeasurement, type Variables } from './operation-measurement.ts';

type QueryLimitCode = 'QUERY_TOO_DEEP' | 'QUERY_TOO_EXPENSIVE' | 'TOO_MANY_ALIASES' | 'TOO_MANY_ROOT_FIELDS';

/** Which limit a document is beyond, and by how much; null: none. It need not be valid: what cannot be resolved counts as it stands. */
export function findExceededLimit(
  schema: GraphQLSchema,
  document: DocumentNode,
  variables: Variables | null,
): GraphQLError | null {
  const aliases = countAliases(document);
  if (aliases > limits.queryAliases) {
    return refuse('TOO_MANY_ALIASES', `The document has ${aliases} aliases`, limits.queryAliases, aliases);
  }
  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
    const { cost, depth, excess, fields } = new OperationMeasurement(
      schema,
      document,
      definition,
      variables,
    ).measure();
    if (depth > limits.queryDepth) {
      const message = `The operation is ${depth} levels deep or more`;
      return refuse('QUERY_TOO_DEEP', message, limits.queryDepth, depth);
    }
    if (fields > limits.queryRootFields) {
      const message = `The operation has ${fields} root fields`;
      return refuse('TOO_MANY_ROOT_FIELDS', message, limits.queryRootFields, fields);
    }
    if (excess) return excess;
    if (cost > limits.queryCost) {
      const message = `The operation costs ${cost}, as many values as its answer may have`;
      return refuse('QUERY_TOO_EXPENSIVE', message, limits.queryCost, cost);
    }
  }
  return null;
}

function refuse(code: QueryLimitCode, message: string, limit: number, actual: number): GraphQLError {
  return new GraphQLError(`${message}. At most ${limit} are allowed.`, {
    extensions: { code, limit, actual },
  });
}

const knownAliases = new WeakMap<DocumentNode, number>();

/** Counted once: documents are kept, and variables change nothing. */
function countAliases(document: DocumentNode): number {
  const known = knownAliases.get(document);
  if (known !== undefined) return known;
  let aliases = 0;
  visit(document, {
    Field: ({ alias }) => {
      if (alias) aliases++;
    },
    Argument: () => false,
  });
  knownAliases.set(document, aliases);
  return aliases;
}
