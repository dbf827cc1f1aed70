import { GroupCommit } from '../db/group-commit.ts';
import type { Installation } from '../db/migrate.ts';
import type { Database } from '../db/pool.ts';
import { orUnavailable } from '../db/unavailable.ts';
import { isInvalidInput, parsed } from '../domain/problems.ts';
import { parseTraceparent } from '../domain/trace-context.ts';
import type { WorkObserver } from '../domain/work-observer.ts';
import { admit, KeyTaken } from './admit.ts';
import { keyName } from './idempotency.ts';
import { JobCatalog } from './job-catalog.ts';
import { type IncomingEvent, parseEvent, parseReceivedEvent } from './parse-event.ts';
import { parseLaunch } from './parse-launch.ts';
import { type Admission, type AdmissionOutcome, keyOf } from './plan-admissions.ts';
import { tellEvent, tellLaunch } from './tell-admissions.ts';
import type {
  Intake,
  LaunchRunInput,
  LaunchRunOutcome,
  PublishEventInput,
  PublishEventOutcome,
} from './types.ts';

export interface IntakeOptions {
  db: Database;
  installation: Installation;
  /** Called after each group: something may have been stored. */
  onCommit: () => void;
  observer: WorkObserver | null;
}

/** Takes launches and events in. Commands that arrive together share a transaction. */
export function createIntake({
  db,
  installation,
  onCommit,
  observer,
}: IntakeOptions): Intake & { drained(): Promise<void> } {
  const catalog = new JobCatalog();
  const group = new GroupCommit<Admission, AdmissionOutcome>({
    maxItems: 500,
    keysOf: (admission) => {
      const key = keyOf(admission);
      return key ? [keyName(key)] : [];
    },
    sizeOf: (admission) =>
      JSON.stringify('launch' in admission ? admission.launch.config : admission.event.payload).length,
    apply: async (admissions) => {
      const outcomes = await admitOnce(admissions);
      onCommit();
      return outcomes;
    },
  });
  const admitOnce = async (admissions: readonly Admission[]): Promise<AdmissionOutcome[]> => {
    for (;;) {
      try {
        return await admit(db, installation.epoch, catalog, admissions);
      } catch (error) {
        if (!(error instanceof KeyTaken)) throw error;
      }
    }
  };

  const launchRun = async (input: LaunchRunInput): Promise<LaunchRunOutcome> => {
    const launch = parsed(() => parseLaunch(input));
    if (isInvalidInput(launch)) return launch;
    const traceContext = parseTraceparent(input.traceparent);
    const submit = () => orUnavailable(group.submit({ launch, traceContext }) as Promise<LaunchRunOutcome>);
    return observer ? tellLaunch(observer, launch, traceContext, submit) : submit();
  };
  const admitEvent = async (
    { traceparent }: Pick<PublishEventInput, 'traceparent'>,
    parse: () => IncomingEvent,
  ): Promise<PublishEventOutcome> => {
    const event = parsed(parse);
    if (isInvalidInput(event)) return event;
    const traceContext = parseTraceparent(traceparent);
    const submit = () => orUnavailable(group.submit({ event, traceContext }) as Promise<PublishEventOutcome>);
    return observer ? tellEvent(observer, event, traceContext, submit) : submit();
  };

  return {
    launchRuns: (inputs) => Promise.all(inputs.map(launchRun)),
    publishEvents: (inputs) => Promise.all(inputs.map((input) => admitEvent(input, () => parseEvent(input)))),
    receiveEvent: (input) => admitEvent(input, () => parseReceivedEvent(input)),
    drained: () => group.drained(),
  };
}
