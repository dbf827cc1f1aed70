export interface DutyOptions {
  name: string;
  /** Does what is due; answers in how many milliseconds to come back, unless woken before. */
  runOnce(): Promise<number>;
  /** Least time between the starts of two runs, however often it is woken. Default 0. */
  minGapMs?: number;
  onError: (error: unknown, duty: string) => void;
}

const afterErrorMs = 1000;

/** A background duty: runs, sleeps, and runs again when its time has come or when it is woken. One run at a time. */
export class Duty {
  readonly #options: DutyOptions;
  #running: Promise<void> | null = null;
  #stopped = true;
  #woken = false;
  #endSleep: (() => void) | null = null;
  #sleepsUntilWoken = false;

  constructor(options: DutyOptions) {
    this.#options = options;
  }

  start(): void {
    if (!this.#stopped) return;
    this.#stopped = false;
    this.#running = this.#run();
  }

  /** Runs as soon as possible; while it runs, once more after that. */
  wake(): void {
    this.#woken = true;
    if (this.#sleepsUntilWoken) this.#endSleep?.();
  }

  /** Settles when a run that is under way is over. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#endSleep?.();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      this.#woken = false;
      const started = performance.now();
      let wait = 0;
      let gap = this.#options.minGapMs ?? 0;
      try {
        wait = await this.#options.runOnce();
      } catch (error) {
        this.#options.onError(error, this.#options.name);
        // Its wake-ups do not hasten a duty that fails: that would strike a database in trouble all the harder.
        gap = Math.max(gap, afterErrorMs);
      }
      const rest = started + gap - performance.now();
      if (rest > 0) await this.#sleep(rest, false);
      if (!this.#woken) await this.#sleep(wait, true);
    }
  }

  async #sleep(ms: number, untilWoken: boolean): Promise<void> {
    if (this.#stopped) return;
    this.#sleepsUntilWoken = untilWoken;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#endSleep = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#endSleep = null;
    this.#sleepsUntilWoken = false;
  }
}
