import type { ClaimTasksInput, ClaimTasksOutcome } from '../dispatch/types.ts';
import { isAllowed, type Restrictions, restrictedScopes } from '../domain/credential.ts';
import type { Forbidden } from '../domain/problems.ts';
import { whileAuthorized } from './authority-watch.ts';
import type { GraphQLContext } from './context.ts';
import { forbidden } from './scopes.ts';

/** Refuses a name that the caller's token does not reach. Names are compared as they are stored, in NFC. */
export function refusedName(
  { viewer }: GraphQLContext,
  kind: keyof Restrictions,
  name: string,
): Forbidden | null {
  if (isAllowed(viewer, kind, name.normalize('NFC'))) return null;
  return forbidden(restrictedScopes[kind], `The token is restricted to other ${kind}.`);
}

/** Carries out the entries of a batch that the token allows; the others are refused, each in its place. */
export async function eachAllowed<Input, Outcome>(
  inputs: readonly Input[],
  refuse: (input: Input) => Forbidden | null,
  run: (allowed: readonly Input[]) => Promise<readonly Outcome[]>,
): Promise<(Outcome | Forbidden)[]> {
  const refusals = inputs.map(refuse);
  const allowed = inputs.filter((_, i) => refusals[i] === null);
  const outcomes = (allowed.length > 0 ? await run(allowed) : []).values();
  return refusals.map((refusal) => refusal ?? (outcomes.next().value as Outcome));
}

/** Claims for the agents that the token allows; without any named, for all of them. */
export async function claimAllowed(
  context: GraphQLContext,
  input: ClaimTasksInput,
): Promise<ClaimTasksOutcome | Forbidden> {
  const { viewer, services } = context;
  const refusal = input.agents
    ?.map((name) => refusedName(context, 'agents', name))
    .find((found) => found !== null);
  if (refusal) return refusal;
  const agents = input.agents ?? viewer.restrictions.agents;
  const outcome = await whileAuthorized(
    context,
    input.waitSeconds,
    (gone) => services.dispatch.claimTasks({ ...input, agents }, gone),
    // What was claimed at the last moment is given out: nobody else could work on it.
    (claimed) => claimed.kind !== 'ClaimTasksSuccess' || claimed.assignments.length === 0,
  );
  if (outcome.kind !== 'ClaimTasksSuccess' || viewer.restrictions.agents === null) return outcome;
  // A key may repeat the claim of somebody whose token reaches further.
  const assignments = outcome.assignments.filter(({ agent }) => isAllowed(viewer, 'agents', agent));
  return { ...outcome, assignments };
}
