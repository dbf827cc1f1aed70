import { setImmediate } from 'node:timers/promises';

const breathEveryMs = 50;

/** Lets others go on in between: what takes long must not stop heartbeats. */
export function createBreather(): () => Promise<void> {
  let since = performance.now();
  return async () => {
    if (performance.now() - since < breathEveryMs) return;
    await setImmediate();
    since = performance.now();
  };
}
