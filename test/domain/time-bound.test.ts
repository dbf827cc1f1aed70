import { describe, expect, it } from 'vitest';
import { timeBound } from '../../src/domain/time-bound.ts';

/** Time passes and nothing is computed, as for a process that has to wait for the processor. */
function waitMs(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

const computeForEver = (): never => {
  for (;;);
};

describe('work within a time', () => {
  it('answers, and throws its own errors', () => {
    expect(timeBound(50, () => 'done')).toBe('done');
    expect(() =>
      timeBound(50, () => {
        throw new Error('its own');
      }),
    ).toThrow('its own');
  });

  it('is ended when it computes for longer', () => {
    expect(() => timeBound(50, computeForEver)).toThrow('it takes longer than 50 ms');
  });

  it('is run again when it had to wait for the processor', () => {
    let runs = 0;
    const waited = timeBound(50, () => {
      runs += 1;
      if (runs < 3) waitMs(10_000);
      return runs;
    });
    expect(waited).toBe(3);
  });

  it('is ended in the end, however long it waits', () => {
    expect(() => timeBound(20, () => waitMs(10_000))).toThrow('it takes longer than 20 ms');
  });
});
