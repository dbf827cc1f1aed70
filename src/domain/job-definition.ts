import type { Json } from './json.ts';

export type StepCondition = 'DEPENDENCIES_COMPLETED' | 'DEPENDENCIES_FINISHED';

/** One step of a job as it is stored with the job's version. */
export interface StepDefinition {
  name: string;
  /** UUID of the agent; agents are never deleted. */
  agentId: string;
  dependsOn: string[];
  when: StepCondition;
  cancellable: boolean;
  optional: boolean;
  /** json-e template of the input; null passes the config. */
  input: Json;
  assetKey: string | null;
  readsAssetKeys: string[];
  /** Null: the agent's retry policy decides. */
  maxAttempts: number | null;
}

/** Names of a cycle in the steps' dependencies, in order; null when there is none. */
export function findCycle(steps: readonly Pick<StepDefinition, 'name' | 'dependsOn'>[]): string[] | null {
  const byName = new Map(steps.map((step) => [step.name, step]));
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (name: string): string[] | null => {
    const start = path.indexOf(name);
    if (start >= 0) return [...path.slice(start), name];
    if (done.has(name)) return null;
    path.push(name);
    for (const dependency of byName.get(name)?.dependsOn ?? []) {
      const cycle = visit(dependency);
      if (cycle) return cycle;
    }
    path.pop();
    done.add(name);
    return null;
  };
  for (const step of steps) {
    const cycle = visit(step.name);
    if (cycle) return cycle;
  }
  return null;
}

/** The steps that these wait for, directly or through others. */
export function allDependencies(
  direct: readonly string[],
  steps: readonly Pick<StepDefinition, 'name' | 'dependsOn'>[],
): Set<string> {
  const byName = new Map(steps.map((step) => [step.name, step]));
  const found = new Set(direct);
  for (const name of found) for (const dependency of byName.get(name)?.dependsOn ?? []) found.add(dependency);
  return found;
}
