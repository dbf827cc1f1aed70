import type { Configuration } from '../operator/types.ts';
import { agents, jobs, routes } from './definitions.ts';

const actor = { name: 'knowledge', requestId: null };

/** What the pipeline needs to be installed. */
interface Services {
  configuration: Pick<Configuration, 'saveAgent' | 'saveJob' | 'saveRoute'>;
}

interface Outcome {
  kind: string;
  message?: string;
}

/**
 * Saves what the pipeline consists of. Several servers may do so at once, and each at every start: what is there already
 * raises no version. Jobs are the other half of the handlers, so they are brought up to this release. Agents and routes
 * are only created where they are missing: what an operator tuned or switched off stays so.
 */
export async function installKnowledge({ configuration }: Services): Promise<void> {
  const create = { ifVersion: 0 };
  for (const agent of agents)
    createdOrThere(await configuration.saveAgent({ ...agent, ...create }, actor), agent.name);
  for (const job of jobs) saved(await configuration.saveJob(job, actor), job.name);
  for (const route of routes)
    createdOrThere(await configuration.saveRoute({ ...route, ...create }, actor), route.name);
}

/** With ifVersion 0 an object that exists is an illegal state, which is what was wanted. */
function createdOrThere(outcome: Outcome, name: string): void {
  if (outcome.kind !== 'IllegalState') saved(outcome, name);
}

function saved({ kind, message }: Outcome, name: string): void {
  if (message !== undefined)
    throw new Error(`The knowledge pipeline could not save ${name} (${kind}): ${message}`);
}
