import type { WorkObserver } from '../domain/work-observer.ts';

/** The first one decides what workers continue. */
export const bothObservers = (first: WorkObserver, second: WorkObserver): WorkObserver => ({
  admitted: (work) => {
    first.admitted(work);
    second.admitted(work);
  },
  claimed: (work) => {
    first.claimed(work);
    second.claimed(work);
  },
  dispatched: (work) => {
    first.dispatched(work);
    second.dispatched(work);
  },
  recorded: (attempts, results) => {
    first.recorded(attempts, results);
    second.recorded(attempts, results);
  },
  traceparent: (work) => first.traceparent(work),
});

/** Work that is done must not fail because nobody could be told of it. */
export function carefully(observer: WorkObserver, onError: (error: unknown) => void): WorkObserver {
  const guard = (tell: () => void): void => {
    try {
      tell();
    } catch (error) {
      onError(error);
    }
  };
  return {
    admitted: (work) => guard(() => observer.admitted(work)),
    claimed: (work) => guard(() => observer.claimed(work)),
    dispatched: (work) => guard(() => observer.dispatched(work)),
    recorded: (attempts, results) => guard(() => observer.recorded(attempts, results)),
    traceparent: (work) => observer.traceparent(work),
  };
}
