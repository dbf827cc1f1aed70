import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  parse,
  specifiedRules,
  ValuesOfCorrectTypeRule,
  validate,
} from 'graphql';
import { limits } from '../domain/limits.ts';
import type { ErrorCode } from '../errors.ts';
import { findExceededLimit } from '../graphql/query-limits.ts';
import { withoutValues } from '../graphql/without-values.ts';
import { withAllowedValues } from './allowed-values.ts';
import { cannotExecute, HttpError } from './http-error.ts';
import { literalsOfCorrectType } from './literal-faults.ts';

type Variables = Readonly<Record<string, unknown>>;

const rules = specifiedRules.map((rule) => (rule === ValuesOfCorrectTypeRule ? literalsOfCorrectType : rule));

const kept = 500;
const keptChars = 20_000;

/** Parses, measures and validates GraphQL documents: the same way for all transports. */
export class Documents {
  readonly #schema: GraphQLSchema;
  /** What was valid once stays so: clients send few different documents, over and over. */
  readonly #valid = new Map<string, DocumentNode>();

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
  }

  /** An error is returned where the text is no GraphQL; a text that is too long is refused. */
  parse(query: string): DocumentNode | GraphQLError {
    const known = this.#valid.get(query);
    if (known) return known;
    try {
      return parse(query, { maxLexicalTokens: limits.queryTokens });
    } catch (error) {
      if (error instanceof RangeError) return nestedTooDeep();
      if (!(error instanceof GraphQLError)) throw error;
      if (/ more tha[nt] \d+ tokens/.test(error.message)) {
        const message = `The document has more than ${limits.queryTokens} tokens.`;
        throw new HttpError(400, 'QUERY_TOO_LARGE', message, { extensions: { limit: limits.queryTokens } });
      }
      return withCode(error, 'GRAPHQL_PARSE_FAILED');
    }
  }

  /**
   * Why a parsed document cannot be executed; beyond a limit it is refused at once. Limits come first: what
   * validation takes grows faster than the document.
   */
  validate(
    query: string,
    document: DocumentNode,
    variables: Variables | null,
    hideSuggestions: boolean,
  ): readonly GraphQLError[] {
    const exceeded = findExceededLimit(this.#schema, document, variables);
    if (exceeded) throw cannotExecute([exceeded]);
    if (this.#valid.get(query) !== document) {
      const errors = this.#validate(document, hideSuggestions);
      const told = (message: string): string =>
        hideSuggestions ? message : withAllowedValues(message, this.#schema);
      if (errors.length > 0)
        return errors.map((error) =>
          withCode(error, 'GRAPHQL_VALIDATION_FAILED', told(withoutValues(error))),
        );
    }
    if (query.length <= keptChars) this.#keep(query, document);
    return [];
  }

  #validate(document: DocumentNode, hideSuggestions: boolean): readonly GraphQLError[] {
    try {
      return validate(this.#schema, document, rules, { hideSuggestions });
    } catch (error) {
      if (error instanceof RangeError) return [nestedTooDeep()];
      throw error;
    }
  }

  #keep(query: string, document: DocumentNode): void {
    this.#valid.delete(query);
    this.#valid.set(query, document);
    const [oldest] = this.#valid.keys();
    if (this.#valid.size > kept && oldest !== undefined) this.#valid.delete(oldest);
  }
}

const nestedTooDeep = (): GraphQLError =>
  new GraphQLError('The document is nested too deep.', { extensions: { code: 'GRAPHQL_PARSE_FAILED' } });

function withCode(
  error: GraphQLError,
  code: ErrorCode,
  message: string = withoutValues(error),
): GraphQLError {
  const { nodes, source, positions } = error;
  return new GraphQLError(message, { nodes, source, positions, extensions: { code } });
}
