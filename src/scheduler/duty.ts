import { setTimeout as delay } from 'node:timers/promises';

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
  #wakeUp: (() => void) | null = null;

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
    this.#wakeUp?.();
  }

  /** Settles when a run that is under way is over. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#wakeUp?.();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      this.#woken = false;
      const started = performance.now();
      let wait = afterErrorMs;
      try {
        wait = await this.#options.runOnce();
      } catch (error) {
        this.#options.onError(error, this.#options.name);
        await this.#sleep(afterErrorMs);
      }
      const gap = started + (this.#options.minGapMs ?? 0) - performance.now();
      if (gap > 0 && !this.#stopped) await delay(gap);
      if (!this.#woken && !this.#stopped) await this.#sleep(wait);
    }
  }

  async #sleep(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wakeUp = null;
  }
}
