import type {
  Forbidden,
  IdempotencyConflict,
  IllegalState,
  InvalidInput,
  JobNotFound,
  LeaseTokenInvalid,
  NotFound,
  ResultConflict,
  RunConfigValidationInvalid,
  Unavailable,
} from './domain/problems.ts';

/**
 * execution: the code of a failed task. problem: the type of a member of a result union. graphql: extensions.code of a
 * GraphQL error. start: why the server did not start.
 */
export type ErrorPlace = 'execution' | 'problem' | 'graphql' | 'start';

export interface ErrorEntry<Code extends string = string> {
  code: Code;
  /** What it means and what to do; a single error may say more. */
  message: string;
  /** Whether the same request, or the same work, may succeed when it is repeated unchanged. */
  retryable: boolean;
  where: ErrorPlace;
}

type Meaning = Pick<ErrorEntry, 'message' | 'retryable'>;

type Problem =
  | Forbidden
  | IdempotencyConflict
  | IllegalState
  | InvalidInput
  | JobNotFound
  | LeaseTokenInvalid
  | NotFound
  | ResultConflict
  | RunConfigValidationInvalid
  | Unavailable;

const execution = {
  LEASE_LOST: {
    message: 'The lease of the task was lost too often in a row: it probably kills its workers.',
    retryable: true,
  },
  TIMED_OUT: { message: "The attempt ran longer than the agent's timeoutSeconds.", retryable: true },
  DEPENDENCY_FAILED: { message: 'A step that this one depends on did not complete.', retryable: false },
  INPUT_TEMPLATE_FAILED: {
    message: "The step's input template cannot be rendered for this run.",
    retryable: false,
  },
  RELEASED_TOO_OFTEN: {
    message: 'Attempts were handed back too often in a row, so that the last one counted.',
    retryable: true,
  },
  FAILED: { message: 'The agent reported a failure without an error.', retryable: true },
  HANDLER_ERROR: { message: 'The handler of an inline agent threw an error.', retryable: true },
  INVALID_RESULT: { message: 'The handler of an inline agent returned what is no result.', retryable: true },
  INVALID_EVENTS: {
    message: 'The handler of an inline agent told events that are refused.',
    retryable: true,
  },
} as const satisfies Record<string, Meaning>;

const problem: Record<Problem['kind'], Meaning> = {
  InvalidInput: { message: 'A field of the input is wrong; field names it.', retryable: false },
  NotFound: { message: 'What the input names does not exist.', retryable: false },
  IllegalState: {
    message: 'The status or version of the object does not allow the action.',
    retryable: false,
  },
  Forbidden: {
    message:
      'The credential lacks the scope that scope names, or is restricted to other agents, jobs or topics.',
    retryable: false,
  },
  JobNotFound: { message: 'The job does not exist or is disabled.', retryable: false },
  RunConfigValidationInvalid: {
    message: "The config does not satisfy the job's schema; errors has every fault.",
    retryable: false,
  },
  IdempotencyConflict: {
    message: 'The idempotency key was used before with another input.',
    retryable: false,
  },
  Unavailable: {
    message:
      'The database cannot be reached, or what came together takes too long; whether it was applied may be unknown. Repeat with the same key.',
    retryable: true,
  },
  LeaseTokenInvalid: {
    message: 'The token does not belong to the attempt, or there is no such attempt.',
    retryable: false,
  },
  ResultConflict: {
    message: 'This attempt reported another result before; what was stored first stands.',
    retryable: false,
  },
};

const graphql = {
  BAD_REQUEST: { message: 'The request is no GraphQL request.', retryable: false },
  METHOD_NOT_ALLOWED: { message: 'The HTTP method does not fit; send mutations by POST.', retryable: false },
  UNSUPPORTED_MEDIA_TYPE: { message: 'The body must be sent as application/json.', retryable: false },
  NOT_ACCEPTABLE: {
    message: 'What the Accept header asks for is not what this can be answered as.',
    retryable: false,
  },
  DOCUMENT_NOT_TRUSTED: {
    message: 'Only the documents of a list are executed here, and this is none of them.',
    retryable: false,
  },
  TOO_MANY_REQUESTS: {
    message: 'The credential sends more requests than it may; Retry-After says when to go on.',
    retryable: true,
  },
  TOO_MANY_STREAMS: {
    message: 'The token has as many streams open as it may; close one first.',
    retryable: true,
  },
  STREAM_CONFLICT: {
    message: 'The stream is open already, or has an operation with this id.',
    retryable: false,
  },
  QUERY_TOO_LARGE: { message: 'The document has more tokens than it may have.', retryable: false },
  QUERY_TOO_DEEP: { message: 'The operation is nested deeper than it may be.', retryable: false },
  QUERY_TOO_EXPENSIVE: {
    message: 'The answer may have more values than it may cost; extensions.actual is the cost.',
    retryable: false,
  },
  TOO_MANY_ALIASES: { message: 'The document has more aliases than it may have.', retryable: false },
  TOO_MANY_ROOT_FIELDS: {
    message: 'The operation has more root fields than it may have.',
    retryable: false,
  },
  GRAPHQL_PARSE_FAILED: { message: 'The document is no GraphQL.', retryable: false },
  GRAPHQL_VALIDATION_FAILED: { message: 'The document does not fit the schema.', retryable: false },
  OPERATION_RESOLUTION_FAILURE: {
    message: 'The document has several operations and operationName names none of them.',
    retryable: false,
  },
  BAD_USER_INPUT: { message: 'An argument is outside its range or form.', retryable: false },
  CSRF_REFUSED: {
    message: 'A page of another site sent the request; only pages of this server may.',
    retryable: false,
  },
  UNAUTHENTICATED: {
    message: 'The credential is missing, wrong, expired or revoked; it is not told which.',
    retryable: false,
  },
  FORBIDDEN: { message: 'The credential lacks the scope that extensions.scope names.', retryable: false },
  INVALID_CURSOR: { message: 'The cursor is none of this list, filter or order.', retryable: false },
  CURSOR_EXPIRED: {
    message:
      'The cursor is older than what is kept, or of another database; extensions.cursor restarts from now.',
    retryable: false,
  },
  SLOW_CONSUMER: {
    message: 'The subscriber fell too far behind; resume from the last cursor it got.',
    retryable: true,
  },
  PAGE_TOO_LARGE: { message: 'More entries were asked for than a page may have.', retryable: false },
  BATCH_TOO_LARGE: { message: 'The batch has more entries than one mutation may have.', retryable: false },
  NOT_FOUND: { message: 'There is nothing at this path of the server.', retryable: false },
  BODY_TOO_LARGE: { message: 'The request body is larger than it may be.', retryable: false },
  UNAVAILABLE: {
    message: 'The database cannot be reached or is too busy; repeat in a moment.',
    retryable: true,
  },
  INTERNAL_SERVER_ERROR: {
    message: 'The server failed; its log has the cause under the request id.',
    retryable: true,
  },
} as const satisfies Record<string, Meaning>;

const start = {
  CONFIGURATION_INVALID: {
    message: 'Settings in the environment are wrong; every fault is listed.',
    retryable: false,
  },
  PORT_IN_USE: { message: 'Another process listens on RUNPLANE_PORT.', retryable: false },
  DATA_DIRECTORY_UNUSABLE: {
    message: 'The embedded Postgres cannot run on RUNPLANE_DATA_DIR; the message says why and what to do.',
    retryable: false,
  },
  DATABASE_UNREACHABLE: { message: 'No connection to DATABASE_URL could be made.', retryable: true },
} as const satisfies Record<string, Meaning>;

export type ErrorCode =
  | keyof typeof execution
  | keyof typeof problem
  | keyof typeof graphql
  | keyof typeof start;

const entries = (where: ErrorPlace, meanings: Record<string, Meaning>): [string, ErrorEntry][] =>
  Object.entries(meanings).map(([code, meaning]) => [code, { code, ...meaning, where }]);

/** Every code that the product gives. docs/errors.md says the same to its users. */
export const errors = Object.freeze(
  Object.fromEntries([
    ...entries('execution', execution),
    ...entries('problem', problem),
    ...entries('graphql', graphql),
    ...entries('start', start),
  ]),
) as { readonly [Code in ErrorCode]: Readonly<ErrorEntry<Code>> };
