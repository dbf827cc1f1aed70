import { transaction } from '../db/transaction.ts';
import { isInvalidInput } from '../domain/problems.ts';
import { isNotFound, lockNames } from './rows.ts';
import { type ObjectKind, requestOf, type SaveContext, saveIn } from './save.ts';
import { type JobSpec, jobKind } from './save-job.ts';
import { routeKind } from './save-route.ts';
import type { Actor, InstallJobInput, InstallJobOutcome, SaveJobInput } from './types.ts';

/** A job that was disabled stays so. */
const installedKind: ObjectKind<SaveJobInput, JobSpec> = {
  ...jobKind,
  keep: (spec, before) => ({ ...spec, enabled: before?.enabled ?? spec.enabled }),
};

/** A route comes with its job, in one transaction: where only the job is there, somebody deleted the route. */
export async function installJob(
  context: SaveContext,
  input: InstallJobInput,
  actor: Actor,
): Promise<InstallJobOutcome> {
  const job = requestOf(installedKind, input.job);
  if (isInvalidInput(job)) return job;
  const route = requestOf(routeKind, { ...input.route, ifVersion: 0 });
  if (isInvalidInput(route)) return route;
  const outcome = await transaction(context.db, async (tx) => {
    await lockNames(tx, [
      { noun: 'job', name: job.name },
      { noun: 'route', name: route.name },
    ]);
    const saved = await saveIn(tx, installedKind, job, actor);
    if ('kind' in saved) return saved;
    const created = saved.before === null ? await saveIn(tx, routeKind, route, actor) : null;
    if (isNotFound(created)) throw new Error(`The route ${route.name} does not lead to its job.`);
    return { kind: 'InstallJobSuccess', changed: saved.changed } as const;
  });
  if (outcome.kind !== 'InstallJobSuccess') return outcome;
  if (outcome.changed) context.onCommit();
  return { kind: 'InstallJobSuccess' };
}
