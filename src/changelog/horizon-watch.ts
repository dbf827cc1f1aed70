import { Duty } from '../db/duty.ts';
import type { Database } from '../db/pool.ts';
import { type HorizonBlocker, readBlocker } from './horizon-blocker.sql.ts';
import { endOf, horizonOf, readSnapshot } from './snapshot.ts';

/** The horizon stands still while transactions behind it end: cursors of streams stay where they are. */
export interface HorizonStall {
  /** How long already. */
  seconds: number;
  /** Null: there is one, and the database does not show whose it is. */
  blocker: HorizonBlocker | null;
}

/** A horizon that others are ahead of, and since when it was seen. */
export interface StandingHorizon {
  horizon: bigint;
  since: number;
}

/** Null: nothing ended that the horizon did not pass, so nothing waits for it, however old its transaction is. */
export function followHorizon(
  standing: StandingHorizon | null,
  snapshot: string,
  at: number,
): StandingHorizon | null {
  const horizon = horizonOf(snapshot);
  if (horizon === endOf(snapshot)) return null;
  return standing?.horizon === horizon ? standing : { horizon, since: at };
}

export interface HorizonWatchOptions {
  db: Database;
  log: { warn(fields: object, message: string): void; info(fields: object, message: string): void };
  onError: (error: unknown, duty: string) => void;
}

const lookEveryMs = 1_000;
const stallAfterMs = 5_000;

/** Notices when an open transaction, of any database of the cluster, keeps cursors from moving on, and says whose it is. */
export class HorizonWatch {
  readonly #options: HorizonWatchOptions;
  #standing: StandingHorizon | null = null;
  #stalled: { horizon: bigint; blocker: HorizonBlocker | null } | null = null;
  readonly #duty: Duty;

  constructor(options: HorizonWatchOptions) {
    this.#options = options;
    const { onError } = options;
    this.#duty = new Duty({
      name: 'horizon watch',
      onError,
      runOnce: () => this.#look().then(() => lookEveryMs),
    });
  }

  get stall(): HorizonStall | null {
    if (!this.#stalled || !this.#standing) return null;
    return { seconds: secondsSince(this.#standing.since), blocker: this.#stalled.blocker };
  }

  start(): void {
    this.#duty.start();
  }

  /** Settles when a look that is under way is over. */
  stop(): Promise<void> {
    return this.#duty.stop();
  }

  async #look(): Promise<void> {
    const { db, log } = this.#options;
    const snapshot = await readSnapshot(db);
    const at = performance.now();
    const before = this.#stalled;
    const standing = followHorizon(this.#standing, snapshot, at);
    this.#standing = standing;
    if (before && standing?.horizon !== before.horizon) {
      this.#stalled = null;
      log.info({}, 'the horizon of the change log moves on again');
    }
    if (!standing || at - standing.since < stallAfterMs) return;
    const blocker = await readBlocker(db, standing.horizon);
    this.#stalled = { horizon: standing.horizon, blocker };
    if (before?.horizon === standing.horizon) return;
    log.warn(
      { blocker, seconds: secondsSince(standing.since) },
      'an open transaction holds back the horizon of the change log: streams go on, their cursors do not',
    );
  }
}

const secondsSince = (since: number): number => Math.floor((performance.now() - since) / 1000);
