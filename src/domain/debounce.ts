/** How launches of one job and key are brought together in one run. */
export interface Debounce {
  key: string;
  seconds: number;
  /** Null: every launch postpones the start, without end. */
  maxSeconds: number | null;
  collect: boolean;
}

/** When a debounced run starts: seconds after the newest launch, at most maxSeconds after the first, never in the past. */
export function debouncedStart({ seconds, maxSeconds }: Debounce, first: Date, newest: Date): Date {
  const quiet = newest.getTime() + seconds * 1000;
  const latest = maxSeconds === null ? quiet : first.getTime() + maxSeconds * 1000;
  return new Date(Math.round(Math.max(newest.getTime(), Math.min(quiet, latest))));
}
