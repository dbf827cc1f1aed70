import type { WorkObserver } from '../../src/domain/work-observer.ts';
import { ResultRecorder } from '../../src/result/results.ts';
import type { ControlPlane } from './control-plane.ts';

/** Hears of everything and says nothing. */
export const silentObserver: WorkObserver = {
  admitted: () => {},
  claimed: () => {},
  dispatched: () => {},
  recorded: () => {},
  traceparent: () => '',
};

/** Records as a process does in which somebody hears of everything: all results are decided one by one. */
export const decidingRecorder = ({ database }: ControlPlane): ResultRecorder =>
  new ResultRecorder({
    db: database.db,
    secretKey: database.installation.secretKey,
    onCommit: () => {},
    observer: silentObserver,
  });
