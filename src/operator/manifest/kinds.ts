import { type Noun, readRow } from '../rows.ts';
import type { ObjectKind } from '../save.ts';
import { agentKind } from '../save-agent.ts';
import { jobKind } from '../save-job.ts';
import { poolKind } from '../save-pool.ts';
import { queueKind } from '../save-queue.ts';
import { routeKind } from '../save-route.ts';
import { throttleKind } from '../save-throttle.ts';

export interface NamedInput {
  name: string;
  ifVersion?: number | null;
}
export type AnyKind = ObjectKind<NamedInput, object>;

/** What can be in a manifest, in an order in which each comes after what it names. */
export const manifestKinds: Readonly<Record<Noun, AnyKind>> = {
  throttle: throttleKind,
  pool: poolKind,
  queue: pausable(queueKind),
  agent: pausable(agentKind),
  job: jobKind,
  route: routeKind,
};

export const manifestNouns = Object.keys(manifestKinds) as Noun[];

/** In a manifest, what can be paused says whether it is; null leaves it as it is. */
function pausable<Input extends NamedInput, Spec extends object>(
  kind: ObjectKind<Input, Spec>,
): ObjectKind<Input & { paused?: boolean | null }, Spec & { paused: boolean | null }> {
  return {
    ...kind,
    parse: (input) => ({ ...kind.parse(input), paused: input.paused ?? null }),
    keep: (spec, before) => ({ ...spec, paused: spec.paused ?? before?.paused ?? false }),
    read: async (tx, id) => ({
      ...(await kind.read(tx, id)),
      ...(await readRow<{ paused: boolean }>(
        tx,
        `select paused from runplane.${kind.noun}s where id = $1`,
        id,
      )),
    }),
    columns: (spec, idOf) => ({ ...kind.columns(spec, idOf), paused: spec.paused }),
  };
}
