import { builder } from './builder.ts';

const says = (description: string) => ({ description });

export const TaskStatusEnum = builder.enumType('TaskStatus', {
  description: 'Where a task is on its way.',
  values: {
    BLOCKED: says('Waits for other steps of its run.'),
    ENQUEUED: says('May run as soon as its time, limits and a worker allow it.'),
    PROCESSING: says('An attempt executes it and holds its lease.'),
    COMPLETED: says('Its work is done. Terminal.'),
    FAILED: says('It failed for good. Terminal, but for an operator who retries it.'),
    CANCELLED: says('It was cancelled. Terminal, but for an operator who retries it.'),
  },
});
export const RunStatusEnum = builder.enumType('RunStatus', {
  description: 'Where a run is on its way, derived from its tasks.',
  values: {
    QUEUED: says('No task was claimed yet.'),
    RUNNING: says('At least one task was claimed and not all are terminal.'),
    CANCELLING: says('It is cancelled, and tasks of it still run.'),
    COMPLETED: says('All its tasks completed, but for optional ones. Terminal.'),
    FAILED: says('All its tasks are terminal and one that is not optional failed. Terminal.'),
    CANCELLED: says('It was cancelled and nothing of it runs any more. Terminal.'),
  },
});
export const AttemptStatusEnum = builder.enumType('AttemptStatus', {
  description: 'How an attempt stands or ended.',
  values: {
    RUNNING: says('It holds the lease of its task.'),
    COMPLETED: says('It did the work.'),
    FAILED: says('It reported a failure.'),
    CANCELLED: says('It stopped because it was asked to, or because another attempt did the work.'),
    LOST: says('Its lease was not extended in time.'),
    RELEASED: says('It handed the task back.'),
    TIMED_OUT: says("It ran longer than the agent's timeoutSeconds."),
  },
});
export const ErrorKindEnum = builder.enumType('ErrorKind', {
  description: 'What a failure says about a next attempt.',
  values: {
    TRANSIENT: says('A next attempt may succeed.'),
    PERMANENT: says('No attempt with this input can succeed: it is not repeated.'),
    INVALID_OUTPUT: says('The model gave something unusable; a next attempt may succeed.'),
    RATE_LIMITED: says('The provider asks to slow down: its throttle is held back and no attempt is spent.'),
    PROVIDER_DOWN: says('The provider does not answer: its throttle is held back and no attempt is spent.'),
    QUOTA_EXHAUSTED: says(
      'A quota of the provider is used up: its throttle is held back and no attempt is spent.',
    ),
  },
});
export const StepConditionEnum = builder.enumType('StepCondition', {
  description: 'When a step runs after those that it depends on.',
  values: {
    DEPENDENCIES_COMPLETED: says('When all completed; else it fails with DEPENDENCY_FAILED.'),
    DEPENDENCIES_FINISHED: says('When all are terminal, however they ended.'),
  },
});
export const BackoffEnum = builder.enumType('Backoff', {
  description: 'How the delay grows with the number n of failures, up to maxDelaySeconds.',
  values: {
    FIXED: says('initialDelaySeconds each time.'),
    LINEAR: says('initialDelaySeconds times n.'),
    EXPONENTIAL: says('initialDelaySeconds times 2 to the power of n - 1.'),
  },
});
export const ThrottleModeEnum = builder.enumType('ThrottleMode', {
  description: 'Which limits a throttle has; derived from those that are set.',
  values: {
    UNLIMITED: says('None: it only holds its agents back when its provider asks for it.'),
    CONCURRENCY: says('A limit of concurrent tasks.'),
    TOKEN_BUDGET: says('A limit of tokens a minute.'),
    REQUEST_RATE: says('A limit of requests a minute or second.'),
    COMBINED: says('Limits of more than one kind.'),
  },
});
export const EventSourceEnum = builder.enumType('EventSource', {
  description: 'How an event came in.',
  values: {
    GRAPHQL: says('By publishEvent or publishEvents.'),
    NATS: says('From a NATS JetStream stream.'),
  },
});
export const WaitingReasonEnum = builder.enumType('WaitingReason', {
  description: 'Why a task does not run; the first that would have to end.',
  values: {
    DEPENDENCY: says('Steps that it depends on are not over.'),
    NOT_BEFORE: says('It was asked for at a later time.'),
    RETRY_BACKOFF: says('It is repeated after a failed attempt, with a delay.'),
    QUEUE_PAUSED: says('Its queue is paused.'),
    AGENT_PAUSED: says('Its agent is paused.'),
    NO_WORKER: says('No live worker asks for tasks of its agent.'),
    POOL_BUSY: says('All slots of its pool are taken.'),
    CONCURRENCY_LIMIT: says('Its agent or a throttle runs as many tasks as it may.'),
    TOKEN_BUDGET: says('The tokens of a throttle are used up for now.'),
    REQUEST_RATE: says('The requests of a throttle are used up for now.'),
    PROVIDER_BACKOFF: says('A throttle is held back by its provider.'),
    SERIAL_KEY: says('An earlier task of the same agent and serial key is not over.'),
    CUSTOMER_LIMIT: says('Its customer runs as many tasks as it may. This version never gives it.'),
    BUDGET: says('A budget is used up. This version never gives it.'),
    APPROVAL: says('It waits for an approval. This version never gives it.'),
    BEHIND_OTHERS: says('Other tasks come before it.'),
  },
});
export const ConfigErrorReason = builder.enumType('ConfigErrorReason', {
  description: 'Kinds of faults of a config.',
  values: {
    MISSING_REQUIRED_FIELD: says('A field is required and absent.'),
    FIELD_NOT_DEFINED: says('A field is none of the schema.'),
    TYPE_MISMATCH: says('A value has the wrong type.'),
    CONSTRAINT_VIOLATED: says('A value has the right type and is not allowed.'),
  },
});
export const ScopeEnum = builder.enumType('Scope', {
  description: 'What a credential allows.',
  values: {
    READ: says('To ask for everything but payloads, and to subscribe.'),
    PAYLOAD_READ: says(
      'To see config, payload, input, output, error messages, metadata and what audit entries changed.',
    ),
    LAUNCH: says('To launch runs, and to rerun them.'),
    PUBLISH: says('To publish events.'),
    WORK: says('To claim tasks.'),
    OPERATE: says(
      'To pause and resume; to cancel, retry, run now, set the priority of and delete tasks; to replay and purge dead letters.',
    ),
    CONFIGURE: says('To save jobs, agents, throttles, queues, pools and routes.'),
    ADMIN: says('To manage credentials.'),
  },
});
export const LeaseStateEnum = builder.enumType('LeaseState', {
  description: 'What became of a lease that was to be extended.',
  values: {
    HELD: says('It is extended.'),
    CANCEL_REQUESTED: says('It is extended; stop and report CANCELLED before cancelDeadline.'),
    STALE: says('It is gone, or leaseToken is not that of the attempt; stop writing.'),
  },
});
export const ResultStatusEnum = builder.enumType('ResultStatus', {
  description: 'How an attempt ended, as its worker says.',
  values: {
    COMPLETED: says('The work is done.'),
    FAILED: says('It failed; error says how.'),
    CANCELLED: says('It stopped because a cancel was requested.'),
    RELEASED: says(
      'It is handed back without spending an attempt; after 20 uncounted ends in a row the next one counts.',
    ),
  },
});
export const ResultOutcomeEnum = builder.enumType('ResultOutcome', {
  description: 'What a reported result changed.',
  values: {
    APPLIED: says('It changed the task.'),
    REPLAYED: says('The same result was there before.'),
    SUPERSEDED: says('Another result stands; only usage and cost were booked.'),
  },
});
export const LineageDirectionEnum = builder.enumType('LineageDirection', {
  description: 'Which way to follow lineage.',
  values: {
    UPSTREAM: says('What it is made from.'),
    DOWNSTREAM: says('What is made from it.'),
    BOTH: says('Both ways.'),
  },
});
export const TaskOrderEnum = builder.enumType('TaskOrder', {
  description: 'Orders of a list of tasks.',
  values: {
    CREATED_DESC: says('Newest first.'),
    CREATED_ASC: says('Oldest first.'),
    AVAILABLE_ASC: says('By the time from which they may run, earliest first.'),
    FINISHED_DESC: says('Latest finished first; those that are not finished come last.'),
    PRIORITY_DESC: says('Highest priority first, oldest first within a priority.'),
    DURATION_DESC: says('Longest from first start to finish first. Needs a filter to terminal statuses.'),
    COST_DESC: says('Most expensive first. Needs a filter to terminal statuses.'),
  },
});

export const TaskActionEnum = builder.enumType('TaskAction', {
  description: 'What an operator can do to a task.',
  values: {
    CANCEL: says('cancelTask: it is not over, and nobody asked for it yet.'),
    RUN_NOW: says('runTaskNow: it is scheduled, or backs off.'),
    RETRY: says('retryTask: it failed or was cancelled.'),
    DELETE: says('deleteTask: it is terminal.'),
    SET_PRIORITY: says('setTaskPriority: it is not over.'),
  },
});
export const RunActionEnum = builder.enumType('RunAction', {
  description: 'What can be done to a run.',
  values: {
    CANCEL: says('cancelRun: it is not over, and nobody asked for it yet. Needs OPERATE.'),
    RERUN: says('rerun: it is terminal. Needs LAUNCH.'),
  },
});
