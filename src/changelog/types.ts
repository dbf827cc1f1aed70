import type { RunStatus, TaskStatus } from '../domain/status.ts';

export interface LabelFilter {
  key: string;
  /** Absent: any value. */
  values?: readonly string[] | null;
}
/** Which task changes a subscriber wants. Fields are AND, entries of a list OR; an empty list matches nothing. */
export interface TaskChangeFilter {
  ids?: readonly string[] | null;
  runIds?: readonly string[] | null;
  statuses?: readonly TaskStatus[] | null;
  jobs?: readonly string[] | null;
  steps?: readonly string[] | null;
  agents?: readonly string[] | null;
  queues?: readonly string[] | null;
  customers?: readonly string[] | null;
  labels?: readonly LabelFilter[] | null;
  anyLabels?: readonly LabelFilter[] | null;
  correlationId?: string | null;
  createdAfter?: Date | null;
  createdBefore?: Date | null;
  not?: TaskChangeFilter | null;
}
export interface RunChangeFilter {
  ids?: readonly string[] | null;
  idempotencyKeys?: readonly string[] | null;
  statuses?: readonly RunStatus[] | null;
  jobs?: readonly string[] | null;
  customers?: readonly string[] | null;
  labels?: readonly LabelFilter[] | null;
  anyLabels?: readonly LabelFilter[] | null;
  correlationId?: string | null;
  createdAfter?: Date | null;
  createdBefore?: Date | null;
}

/** One status change of a task. Ids are UUIDs. */
export interface TaskChange {
  /** The same whenever it is sent again. */
  number: number;
  sequence: number;
  at: Date;
  taskId: string;
  runId: string;
  job: string;
  step: string;
  agent: string;
  attemptId: string | null;
  attemptNumber: number | null;
  fromStatus: TaskStatus | null;
  toStatus: TaskStatus;
  errorCode: string | null;
  reason: string | null;
}
export interface RunChange {
  /** The same whenever it is sent again. */
  number: number;
  sequence: number;
  at: Date;
  runId: string;
  job: string;
  fromStatus: RunStatus | null;
  toStatus: RunStatus;
  reason: string | null;
}
/** What an agent told of its progress. Ids are UUIDs. */
export interface AttemptEvent {
  /** The same whenever it is sent again. */
  number: number;
  sequence: number;
  attemptId: string;
  taskId: string;
  type: string;
  at: Date;
  data: unknown;
}
export type AttemptEventsOf = { runId: string } | { taskId: string } | { attemptId: string };

export interface Changes<Change> {
  cursor: string;
  /** The backlog is through: what follows is live. */
  caughtUp: boolean;
  changes: Change[];
}

/** Messages one after the other, asked for or, while it is waited for one, handed over. */
export interface MessageStream<Message> extends AsyncIterableIterator<Message> {
  /**
   * From now on a message that somebody waits for is offered here first, without a promise: who takes it gives true
   * and goes on waiting. What is not taken is what the wait brings.
   */
  offerTo?(take: (message: Message) => boolean): void;
}

export interface ChangePageRequest {
  /** Null: from the oldest change that is kept. */
  after: string | null;
  first: number;
  /** How long to wait for a first change. */
  waitMs: number;
  /** Ends the wait: nobody is there to be answered. */
  clientGone?: AbortSignal;
}

export interface ChangeLog {
  /** Position now: what commits later is after it. */
  currentCursor(): Promise<string>;
  /** At least once, in order per object, without gaps. Throws CursorError for a cursor that cannot be resumed. */
  taskChanges(filter: TaskChangeFilter, after: string | null): MessageStream<Changes<TaskChange>>;
  runChanges(filter: RunChangeFilter, after: string | null): MessageStream<Changes<RunChange>>;
  /**
   * The same as a page, which may be short or empty before it is caught up: at most first changes, but for those that
   * have to come before one of them.
   */
  taskChangePage(filter: TaskChangeFilter, page: ChangePageRequest): Promise<Changes<TaskChange>>;
  runChangePage(filter: RunChangeFilter, page: ChangePageRequest): Promise<Changes<RunChange>>;
  /**
   * What agents tell, as a stream with the same promises and cursors; in order per attempt. Completes when what it is of
   * is over, and at once when there is none.
   */
  attemptEvents(of: AttemptEventsOf, after: string | null): Promise<MessageStream<Changes<AttemptEvent>>>;
}
