import type { DebounceInput, LaunchRunInput, LaunchRunOutcome } from '../../src/intake/types.ts';
import type { ControlPlane } from './control-plane.ts';

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
