export type TaskStatus = 'BLOCKED' | 'ENQUEUED' | 'PROCESSING' | 'COMPLETED' | 'FAILED' | 'CANCELLED';
export type RunStatus = 'QUEUED' | 'RUNNING' | 'CANCELLING' | 'COMPLETED' | 'FAILED' | 'CANCELLED';

/** A change of the status of a task. */
export interface TaskStatusChange {
  /** The change, chg_…: the same whenever it is sent again. */
  id: string;
  /** Its number among the task's changes: 1, 2, 3 … without gaps; 1 is the creation. */
  sequence: number;
  /** When it was made, in ISO 8601. */
  at: string;
  taskId: string;
  runId: string;
  /** Name of the run's job. */
  job: string;
  /** Name of its step. */
  step: string;
  /** Name of its agent. */
  agent: string;
  /** The attempt that started or ended with the change. */
  attemptId: string | null;
  attemptNumber: number | null;
  /** Null at the creation. */
  fromStatus: TaskStatus | null;
  toStatus: TaskStatus;
  /** Code of the error that caused it. */
  errorCode: string | null;
  /** Why, where someone said it. */
  reason: string | null;
}

/** A change of the status of a run. */
export interface RunStatusChange {
  /** The change, chg_…: the same whenever it is sent again. */
  id: string;
  /** Its number among the run's changes: 1, 2, 3 … without gaps; 1 is the launch. */
  sequence: number;
  /** When it was made, in ISO 8601. */
  at: string;
  runId: string;
  /** Name of its job. */
  job: string;
  /** Null at the launch. */
  fromStatus: RunStatus | null;
  toStatus: RunStatus;
  /** Why, where someone said it. */
  reason: string | null;
}

/** What comes together; often nothing, and then it only moves the cursor on. */
export interface Batch<Change> {
  /** A new watch goes on after it. Store it when the changes are handled. */
  cursor: string;
  /** What was before the watch began is through. */
  caughtUp: boolean;
  /** In order per task or run; none twice in a watch. */
  changes: Change[];
}

/** What an agent told of its progress; docs/attempt-events.md has the types and the shapes of their data. */
export interface AttemptEvent {
  /** The event, aev_…: the same whenever it is sent again. */
  id: string;
  /** Its number among the events of its attempt: 1, 2, 3 … without gaps. */
  sequence: number;
  attemptId: string;
  taskId: string;
  type: string;
  /** When it happened, in ISO 8601. */
  at: string;
  /** Null without PAYLOAD_READ. */
  data: unknown;
}

/** Whose events: of all attempts of a run or task, or of one attempt. */
export type AttemptEventsOf = { runId: string } | { taskId: string } | { attemptId: string };

/** Events that come together; often none, and then it only moves the cursor on. */
export interface EventBatch {
  /** A new watch goes on after it. Store it when the events are handled. */
  cursor: string;
  /** What was before the watch began is through. */
  caughtUp: boolean;
  /** In order per attempt; none twice in a watch. */
  events: AttemptEvent[];
}

export interface LabelFilter {
  key: string;
  /** Values that it may have; absent is any. */
  values?: string[] | null;
}

/** Which changes of tasks: those that every given field matches. */
export interface TaskChangeFilter {
  ids?: string[] | null;
  /** A watch that names runs ends when all of them are terminal and everything was told. */
  runIds?: string[] | null;
  /** What a change leads to. */
  statuses?: TaskStatus[] | null;
  jobs?: string[] | null;
  steps?: string[] | null;
  agents?: string[] | null;
  queues?: string[] | null;
  customers?: string[] | null;
  correlationId?: string | null;
  /** All of these labels, the run's or its own. */
  labels?: LabelFilter[] | null;
  /** At least one of these labels, the run's or its own. */
  anyLabels?: LabelFilter[] | null;
  /** Tasks created at this time or later, in ISO 8601. */
  createdAfter?: string | null;
  createdBefore?: string | null;
  /** Tasks that it matches are left out. One level. */
  not?: Omit<TaskChangeFilter, 'not'> | null;
}

/** Which changes of runs: those that every given field matches. */
export interface RunChangeFilter {
  /** A watch that names runs ends when all of them are terminal and everything was told. */
  ids?: string[] | null;
  /** What a change leads to. */
  statuses?: RunStatus[] | null;
  jobs?: string[] | null;
  customers?: string[] | null;
  idempotencyKeys?: string[] | null;
  correlationId?: string | null;
  /** All of these labels. */
  labels?: LabelFilter[] | null;
  /** At least one of these labels. */
  anyLabels?: LabelFilter[] | null;
  /** Runs created at this time or later, in ISO 8601. */
  createdAfter?: string | null;
  createdBefore?: string | null;
}

/**
 * How changes come: `live` by a stream, `polling` by pages since the stream does not get through, `stale` not at all, so
 * that what they were shown by may be old. A break that the first reconnect mends changes nothing.
 */
export type WatchState = 'live' | 'polling' | 'stale';

interface Options {
  /** Of the endpoint: https://…/graphql; a page of the server itself may say /graphql. */
  url: string;
  /** An API token with READ. Absent in a page of the server, where the session's cookie goes along. */
  token?: string;
  /** Cursor to go on after: of a batch, a launch, a page or changeLogCursor. Absent begins with what happens now. */
  after?: string | null;
  /** Ends the watch, which then is simply over. */
  signal?: AbortSignal;
  /** Called at each change of the state, with what went wrong when it is worse. */
  onState?: (state: WatchState, cause: Error | null) => void;
}

export interface WatchOptions<Filter> extends Options {
  /** Absent is all. */
  filter?: Filter;
}

export interface EventWatchOptions extends Options {
  of: AttemptEventsOf;
}

/** A watch that another try would not help. What fails for a while is tried again and is no error. */
export class WatchError extends Error {
  override readonly name = 'WatchError';
  /** As in extensions.code: CURSOR_EXPIRED, UNAUTHENTICATED, FORBIDDEN, BAD_USER_INPUT …; null: no server of ours answered. */
  readonly code: string | null;
  /**
   * Where a new watch goes on. After CURSOR_EXPIRED: what came between is not kept any more, so query the present state
   * before. Null: nothing was told.
   */
  readonly cursor: string | null;

  constructor(message: string, code: string | null, cursor: string | null) {
    super(message);
    this.code = code;
    this.cursor = cursor;
  }
}
