import type { App } from './app.ts';

/**
 * Stops a server on the first SIGINT or SIGTERM: in good order once it has started, so that nothing of it is left behind
 * by a ctrl-C during the start. Nothing keeps the process then.
 */
export function stopOnSignal(
  starting: Promise<App>,
  tell: { stopping: () => void; stopped: () => void },
): void {
  const stop = (): void => {
    tell.stopping();
    starting
      .then((app) => app.stop())
      .then(tell.stopped, (error: unknown) => {
        process.exitCode = 1;
        process.stderr.write(`runplane: stopping failed: ${String(error)}\n`);
      });
  };
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
}
