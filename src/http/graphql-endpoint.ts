import type { IncomingMessage, ServerResponse } from 'node:http';
import { type GraphQLSchema, OperationTypeNode } from 'graphql';
import type { Authority } from '../domain/credential.ts';
import type { GraphQLContext } from '../graphql/context.ts';
import { maskError } from '../graphql/errors.ts';
import { acceptsAnswer } from './accepted-media.ts';
import { type AdmissionOptions, admit } from './admission.ts';
import { unauthenticated } from './authentication.ts';
import { Documents } from './documents.ts';
import { answerAsEventStream, type OpenStreams } from './event-stream.ts';
import type { HttpAccess } from './http-access.ts';
import { cannotExecute, HttpError } from './http-error.ts';
import { createJsonAnswers } from './json-answers.ts';
import { type Execution, OperationResults } from './operation-results.ts';
import { answerCors } from './origins.ts';
import { type PreparedOperation, prepareOperation } from './prepared-operation.ts';
import { requestIdOf } from './request-id.ts';
import { operationKey } from './shared-results.ts';
import { SingleConnections } from './single-connection.ts';
import { StreamCap } from './stream-cap.ts';

export interface RequestInfo {
  requestId: string;
  /** Makes a signal that aborts when the client leaves before it was answered. Few operations need one. */
  signal: () => AbortSignal;
  /** Where a reconnecting client wants to go on: wins over the subscription's own argument. */
  lastEventId: string | null;
  /** W3C traceparent of the request, as it came. */
  traceparent: string | null;
  authority: Authority;
}

export interface GraphQLEndpointOptions {
  schema: GraphQLSchema;
  createContext: (request: RequestInfo) => GraphQLContext;
  openStreams: OpenStreams;
  admission: AdmissionOptions;
  access: HttpAccess;
  log: { error(fields: object, message: string): void };
}

type Answer = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

export interface GraphQLEndpoint {
  /** /graphql: as JSON by yoga, as an event stream by our own. */
  answer: Answer;
  /** /graphql/stream: likewise, and many operations over a single connection. */
  answerStream: Answer;
  /** How much is kept for clients that are there, by what it is. */
  kept(): Record<string, number>;
}

/** Answers what is asked of the schema, however it is asked. */
export function createGraphQLEndpoint({
  schema,
  createContext,
  openStreams,
  admission,
  access,
  log,
}: GraphQLEndpointOptions): GraphQLEndpoint {
  const { origins } = admission;
  const preparation = {
    documents: new Documents(schema),
    trusted: access.trustedDocuments,
    strangersBodies: admission.strangersBodies,
    authenticationOff: origins.authenticationOff,
  };
  const streams = new StreamCap(access.streamsPerToken);
  const answerAsJson = createJsonAnswers(schema, log);

  /** Throws the errors of an operation that cannot be executed. */
  const executionOf = (prepared: PreparedOperation, context: GraphQLContext): Execution => {
    const { document, definition, errors, request } = prepared;
    if (!document || !definition || errors.length > 0) throw cannotExecute(errors);
    return {
      definition,
      key: operationKey(request, context.viewer),
      args: {
        schema,
        document,
        contextValue: context,
        variableValues: request.variables,
        operationName: request.operationName,
      },
      maskError: (error) => maskError(error, context.requestId, log),
      hideSuggestions: !context.viewer.signedIn,
    };
  };

  const connections = new SingleConnections({
    streams,
    openStreams,
    reservationSeconds: access.reservationSeconds,
  });

  const answerOperation = async (
    request: IncomingMessage,
    response: ServerResponse,
    authority: Authority,
  ): Promise<void> => {
    const prepared = await prepareOperation(request, authority, preparation);
    const context = createContext(requestInfo(request, response, authority));
    if (!wantsEventStream(request, prepared)) {
      await answerAsJson(request, response, { prepared, context });
      return;
    }
    const execution = executionOf(prepared, context);
    const free = streams.take(authority.viewer.tokenId);
    try {
      await answerAsEventStream(response, execution, openStreams);
    } finally {
      free();
    }
  };

  return {
    kept: () => ({
      openStreams: openStreams.size,
      singleConnections: connections.size,
      placesOfTokens: streams.taken,
    }),
    answer: async (request, response) => {
      if (answerCors(request, response, origins)) return;
      await answerOperation(request, response, await admit(request, admission));
    },
    answerStream: async (request, response) => {
      if (answerCors(request, response, origins)) return;
      const authority = await admit(request, admission);
      if (!SingleConnections.isMeant(request)) return answerOperation(request, response, authority);
      if (!authority.viewer.signedIn) throw unauthenticated();
      await connections.answer(request, response, authority, async () => {
        const prepared = await prepareOperation(request, authority, preparation);
        const context = createContext(requestInfo(request, response, authority));
        const execution = executionOf(prepared, context);
        return { request: prepared.request, start: () => OperationResults.start(execution) };
      });
    },
  };
}

function requestInfo(request: IncomingMessage, response: ServerResponse, authority: Authority): RequestInfo {
  const { 'last-event-id': lastEventId, traceparent } = request.headers;
  return {
    authority,
    requestId: requestIdOf(response),
    signal: signalOfLeaving(response),
    lastEventId: typeof lastEventId === 'string' && lastEventId !== '' ? lastEventId : null,
    traceparent: typeof traceparent === 'string' ? traceparent : null,
  };
}

const signalOfLeaving = (response: ServerResponse) => (): AbortSignal => {
  const left = new AbortController();
  if (response.destroyed) left.abort();
  response.once('close', () => {
    if (!response.writableFinished) left.abort();
  });
  return left.signal;
};

/** A subscription has no other form; everything else has it where nothing else is accepted. */
function wantsEventStream(request: IncomingMessage, { definition }: PreparedOperation): boolean {
  const accept = request.headers.accept ?? '';
  if (accept.includes('text/event-stream') && !accept.includes('application/json')) return true;
  if (definition?.operation !== OperationTypeNode.SUBSCRIPTION) {
    if (acceptsAnswer(accept)) return false;
    throw new HttpError(406, 'NOT_ACCEPTABLE', 'Accept must allow application/json, or text/event-stream.');
  }
  if (accept.includes('text/event-stream')) return true;
  throw new HttpError(406, 'NOT_ACCEPTABLE', 'Ask for a subscription with Accept: text/event-stream.');
}
