/** The work that the model test plays with, as the model knows it and as it is saved. */
export interface AgentKind {
  maxAttempts: number;
  delaySeconds: number;
  timeoutSeconds: number;
  /** Claims the tasks behind a serial key together with its first. */
  batches?: boolean;
  overrides: { code: string; retry: boolean; delaySeconds?: number; countsAttempt?: boolean }[];
}

export const leaseSeconds = 30;
export const agents = {
  plain: { maxAttempts: 3, delaySeconds: 0, timeoutSeconds: 100, overrides: [] },
  backing: {
    maxAttempts: 2,
    delaySeconds: 10,
    timeoutSeconds: 50,
    overrides: [
      { code: 'NEVER', retry: false },
      { code: 'SPARED', retry: true, delaySeconds: 0, countsAttempt: false },
    ],
  },
  batching: { maxAttempts: 2, delaySeconds: 10, timeoutSeconds: 50, batches: true, overrides: [] },
} as const satisfies Record<string, AgentKind>;

export interface StepKind {
  name: string;
  agent: keyof typeof agents;
  dependsOn?: string;
  when?: 'DEPENDENCIES_COMPLETED' | 'DEPENDENCIES_FINISHED';
  cancellable?: boolean;
  maxAttempts?: number;
  serialKey?: string;
  /** A template that cannot be rendered. */
  input?: object;
}
export interface JobKind {
  steps: StepKind[];
  /** Launched for so many seconds later. */
  later?: number;
}

const twoSteps = (more: Partial<StepKind>, second: Partial<StepKind>): StepKind[] => [
  { name: 'first', agent: 'plain', ...more },
  { name: 'second', agent: 'backing', dependsOn: 'first', serialKey: 'k', ...more, ...second },
];
/** Two steps that do not wait for each other. */
const twice = (step: Omit<StepKind, 'name'>): StepKind[] => [
  { name: 'first', ...step },
  { name: 'second', ...step },
];
export const jobs = {
  plain: { steps: [{ name: 'only', agent: 'plain' }] },
  once: { steps: [{ name: 'only', agent: 'plain', maxAttempts: 1 }] },
  backing: { steps: [{ name: 'only', agent: 'backing' }] },
  later: { steps: [{ name: 'only', agent: 'plain' }], later: 20 },
  keyed: { steps: [{ name: 'only', agent: 'backing', serialKey: 'k' }] },
  keyed_later: { steps: [{ name: 'only', agent: 'backing', serialKey: 'k' }], later: 20 },
  batched: { steps: [{ name: 'only', agent: 'batching', serialKey: 'k' }] },
  batched_twice: { steps: twice({ agent: 'batching', serialKey: 'k' }) },
  chain: { steps: twoSteps({}, {}) },
  chain_unrenderable: { steps: twoSteps({}, { input: { $eval: 'steps.first.output.missing.deep' } }) },
  chain_finished: { steps: twoSteps({}, { when: 'DEPENDENCIES_FINISHED' }) },
  chain_protected: { steps: twoSteps({ cancellable: false }, { when: 'DEPENDENCIES_FINISHED' }) },
} as const satisfies Record<string, JobKind>;
export type JobName = keyof typeof jobs;

export interface Form {
  status: 'COMPLETED' | 'FAILED' | 'CANCELLED' | 'RELEASED';
  output?: number;
  error?: { code: string; kind?: 'PERMANENT' | 'RATE_LIMITED'; retryAfterSeconds?: number };
}
/** What workers report. */
export const forms = {
  done: { status: 'COMPLETED', output: 1 },
  doneOtherwise: { status: 'COMPLETED', output: 2 },
  failed: { status: 'FAILED', error: { code: 'BOOM' } },
  failedNever: { status: 'FAILED', error: { code: 'NEVER' } },
  failedForGood: { status: 'FAILED', error: { code: 'BOOM', kind: 'PERMANENT' } },
  failedSpared: { status: 'FAILED', error: { code: 'SPARED' } },
  limited: { status: 'FAILED', error: { code: 'BUSY', kind: 'RATE_LIMITED', retryAfterSeconds: 7 } },
  stopped: { status: 'CANCELLED' },
  handedBack: { status: 'RELEASED' },
} as const satisfies Record<string, Form>;
export type FormName = keyof typeof forms;
