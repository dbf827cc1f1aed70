import type { Configuration } from '../operator/types.ts';
import { agents, definitions } from './definitions.ts';

const actor = { name: 'knowledge', requestId: null };

/** What the pipeline needs to be installed. */
interface Services {
  configuration: Pick<Configuration, 'saveAgent' | 'installJob'>;
}

interface Outcome {
  kind: string;
  message?: string;
}

/**
 * Saves what the pipeline consists of. Several servers may do so at once, and each at every start: what is there already
 * raises no version. Jobs are the other half of the handlers, so they are brought up to this release. Agents are only
 * created where they are missing, and routes with their jobs: what an operator tuned, switched off or deleted stays so.
 */
export async function installKnowledge({ configuration }: Services): Promise<void> {
  const create = { ifVersion: 0 };
  for (const agent of agents)
    createdOrThere(await configuration.saveAgent({ ...agent, ...create }, actor), agent.name);
  for (const definition of definitions)
    saved(await configuration.installJob(definition, actor), definition.job.name);
}

/** With ifVersion 0 an object that exists is an illegal state, which is what was wanted. */
function createdOrThere(outcome: Outcome, name: string): void {
  if (outcome.kind !== 'IllegalState') saved(outcome, name);
}

function saved({ kind, message }: Outcome, name: string): void {
  if (message !== undefined)
    throw new Error(`The knowledge pipeline could not save ${name} (${kind}): ${message}`);
}
