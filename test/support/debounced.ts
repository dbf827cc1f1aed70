import { afterEach, beforeEach } from 'vitest';
import type { DebounceInput, LaunchRunInput, LaunchRunOutcome } from '../../src/intake/types.ts';
import { at, stopClock } from './clock.ts';
import { ControlPlane } from './control-plane.ts';

export type DebouncedInput = Omit<Partial<LaunchRunInput>, 'debounce'> & {
  debounce?: Partial<DebounceInput>;
};

/** Launches job one with key k and 60 s, where the inputs say nothing else. */
export const launchDebounced = (
  plane: ControlPlane,
  inputs: readonly DebouncedInput[],
): Promise<LaunchRunOutcome[]> =>
  plane.services.intake.launchRuns(
    inputs.map(({ debounce, ...input }) => ({
      job: 'one',
      ...input,
      debounce: { key: 'k', seconds: 60, ...debounce },
    })),
  );

export async function launchOne(plane: ControlPlane, input: DebouncedInput = {}): Promise<LaunchRunOutcome> {
  const [outcome] = await launchDebounced(plane, [input]);
  if (!outcome) throw new Error('no outcome');
  return outcome;
}

/** All runs, oldest first. */
export const debouncedRuns = (plane: ControlPlane) =>
  plane.rows<{ id: string; config: unknown; starts: Date; key: string }>(
    'select id, config, available_at as starts, debounce_key as key from runplane.runs order by created_at, id',
  );

export const runIdOf = (outcome: LaunchRunOutcome | undefined): string => {
  if (outcome?.kind !== 'LaunchRunSuccess') throw new Error(JSON.stringify(outcome));
  return outcome.runId;
};

/** Makes what is due ready, by the mover's own statement. */
export const moveDueTasks = async (plane: ControlPlane): Promise<void> => {
  await plane.rows('select runplane.move_due_tasks(500)');
};

/** For stories of the job one, on a clock that only they move. */
export function debounced() {
  let plane: ControlPlane;
  beforeEach(async () => {
    plane = await ControlPlane.start();
    await plane.agent('a');
    await plane.job('one', ['a']);
  });
  afterEach(() => plane.stop());
  return {
    /** Of the story that runs. */
    get plane() {
      return plane;
    },
    launchAll: (inputs: DebouncedInput[]): Promise<LaunchRunOutcome[]> => launchDebounced(plane, inputs),
    launch: (input?: DebouncedInput): Promise<LaunchRunOutcome> => launchOne(plane, input),
    runs: () => debouncedRuns(plane),
    time: (seconds: number) => stopClock(plane.database.db, at(seconds)),
    move: () => moveDueTasks(plane),
  };
}
