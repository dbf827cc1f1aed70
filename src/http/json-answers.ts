import type { IncomingMessage, ServerResponse } from 'node:http';
import { execute, GraphQLError, type GraphQLSchema } from 'graphql';
import { createYoga, type Plugin } from 'graphql-yoga';
import type { GraphQLContext } from '../graphql/context.ts';
import { maskError } from '../graphql/errors.ts';
import { findRefusal } from './find-refusal.ts';
import type { PreparedOperation } from './prepared-operation.ts';
import { findVariableFaults } from './variable-faults.ts';

interface JsonAnswer {
  prepared: PreparedOperation;
  context: GraphQLContext;
}

export type AnswerAsJson = (
  request: IncomingMessage,
  response: ServerResponse,
  answer: JsonAnswer,
) => Promise<void>;

interface ErrorLog {
  error(fields: object, message: string): void;
}

/** Answers prepared operations as JSON. Yoga executes, and knows the media types and statuses of GraphQL over HTTP. */
export function createJsonAnswers(schema: GraphQLSchema, log: ErrorLog): AnswerAsJson {
  const yoga = createYoga<JsonAnswer>({
    schema,
    context: ({ context }) => context,
    graphqlEndpoint: '/graphql',
    graphiql: false,
    landingPage: false,
    multipart: false,
    cors: false,
    batching: false,
    logging: false,
    parserAndValidationCache: false,
    plugins: [takePrepared, refuseUnanswered(schema), maskErrors(log)],
    // By the plugin, which knows the id of the request.
    maskedErrors: false,
  });
  return async (request, response, answer) => {
    const { query, operationName, variables, extensions } = answer.prepared.request;
    // Both paths are the same here.
    request.url = request.url?.replace(/^\/graphql\/stream\b/, '/graphql');
    if (request.method === 'POST')
      Object.assign(request, { body: { query, operationName, variables, extensions } });
    await yoga.handle(request, response, answer);
  };
}

/** What was read, parsed and validated is not read, parsed and validated again. */
const takePrepared: Plugin<JsonAnswer, JsonAnswer> = {
  onParams: ({ context, setParams }) => {
    const { query, operationName, variables } = context.prepared.request;
    setParams({ query, operationName: operationName ?? undefined, variables: variables ?? undefined });
  },
  onParse: ({ context, setParseFn }) => {
    const { document, errors } = context.prepared;
    setParseFn(() => {
      if (!document) throw asBadRequest(errors[0] ?? new GraphQLError('The document is no GraphQL.'));
      return document;
    });
  },
  onValidate: ({ context, setValidationFn }) => {
    setValidationFn(() => context.prepared.errors.map(asBadRequest));
  },
  // Yoga's own answers fields in the order in which they were resolved, and not in that in which they were selected.
  onExecute: ({ setExecuteFn }) => setExecuteFn(execute),
};

const withStatus = (error: GraphQLError, http: { status: number; spec?: boolean }): GraphQLError =>
  new GraphQLError(error.message, {
    nodes: error.nodes,
    source: error.source,
    positions: error.positions,
    extensions: { ...error.extensions, http },
  });

/** 400, but 200 where application/json is asked for, as the specification has it. */
const asBadRequest = (error: GraphQLError): GraphQLError => withStatus(error, { status: 400, spec: true });

/** An operation of which nothing was executed, or nothing is answered, has no data and its own status. */
const refuseUnanswered = (schema: GraphQLSchema): Plugin<JsonAnswer & GraphQLContext, JsonAnswer> => ({
  onExecute: ({ args }) => ({
    onExecuteDone: ({ result, setResult }) => {
      if (Symbol.asyncIterator in result) return;
      const { viewer, prepared } = args.contextValue;
      const faults = findVariableFaults(result, schema, !viewer.signedIn);
      if (faults) return setResult({ errors: faults.map(asBadRequest) });
      const refusal = prepared.definition && findRefusal(prepared.definition, result);
      if (refusal) setResult({ errors: refusal.map((error) => withStatus(error, { status: 403 })) });
    },
  }),
});

/** Masks what failed, in an operation or around it, under the id of its request, which the log has too. */
const maskErrors = (log: ErrorLog): Plugin<GraphQLContext, JsonAnswer> => ({
  onResultProcess: (processed) => {
    const { result, serverContext } = processed;
    if (!('errors' in result) || !result.errors) return;
    const { requestId } = serverContext.context;
    processed.setResult({
      ...result,
      errors: result.errors.map((error) => maskError(error, requestId, log)),
    });
  },
});
