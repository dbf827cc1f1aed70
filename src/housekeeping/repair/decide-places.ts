import type { TaskStatus } from '../../domain/status.ts';
import type { MisplacedTask } from './read-misplaced.sql.ts';

/** The last change of a task that has no place, as the change log has it or as a row of its place knew it. */
export interface LastChange {
  status: TaskStatus;
  sequence: number;
  /** Attempts so far, with the one that runs. */
  attempts: number;
  /** The attempt whose lease is missing; null when none was. */
  lost: { attemptId: string; startedAt: Date } | null;
}

export type PlaceRepair =
  /** The lease of a task that is over, or that waits: its attempt ends. */
  | { does: 'END_ATTEMPT'; attemptId: string }
  /** The same where the attempt is recorded already: only the lease goes. */
  | { does: 'DROP_LEASE' }
  | { does: 'REMOVE'; from: 'READY' | 'DELAYED' }
  /** Its place behind its serial key goes, and the next one of the key gets its turn. */
  | { does: 'RELEASE_KEY' }
  | { does: 'ENQUEUE' | 'CANCEL'; last: LastChange }
  /** What it needs to be enqueued again has to be looked up first. */
  | { does: 'LOOK_UP' };

/**
 * What brings a task to its one place, or to none when it is not open. A running attempt stays; of two places in which
 * it waits the one stays that respects its serial key, and being ready wins over waiting for a time.
 */
export function decidePlaces(task: MisplacedTask, last: LastChange | undefined): PlaceRepair[] {
  const { ready, delayed, serial, behindKey, lease } = task;
  const remove = (from: 'READY' | 'DELAYED', there: boolean): PlaceRepair[] =>
    there ? [{ does: 'REMOVE', from }] : [];
  if (task.state !== 'OPEN') {
    const end: PlaceRepair[] = lease
      ? [lease.recorded ? { does: 'DROP_LEASE' } : { does: 'END_ATTEMPT', attemptId: lease.attemptId }]
      : [];
    const release: PlaceRepair[] = serial ? [{ does: 'RELEASE_KEY' }] : [];
    return [...end, ...remove('READY', ready), ...remove('DELAYED', delayed), ...release];
  }
  if (lease) return [...remove('READY', ready), ...remove('DELAYED', delayed)];
  if (behindKey) return remove('READY', ready);
  if (ready) return remove('DELAYED', delayed);
  if (!last) return [{ does: 'LOOK_UP' }];
  return [{ does: task.cancelRequested ? 'CANCEL' : 'ENQUEUE', last }];
}
