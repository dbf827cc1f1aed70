import { editDistance } from './domain/edit-distance.ts';
import { settings } from './settings.ts';

/** A misspelt variable would be a setting that is believed and does nothing. RUNPLANE_TEST_… belongs to the test suite. */
export function unknownVariables(env: Readonly<Record<string, string | undefined>>): string[] {
  const known = Object.keys(settings);
  return Object.keys(env)
    .filter(
      (name) => name.startsWith('RUNPLANE_') && !name.startsWith('RUNPLANE_TEST_') && !known.includes(name),
    )
    .map((name) => {
      const [nearest] = known
        .map((candidate) => ({ candidate, distance: editDistance(name, candidate) }))
        .sort((a, b) => a.distance - b.distance);
      return `There is no setting ${name}; the nearest is ${nearest?.candidate}.`;
    });
}
