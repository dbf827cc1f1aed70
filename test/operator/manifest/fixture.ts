import { readManifest } from '../../../src/cli/manifest/read-manifest.ts';
import { applyManifest } from '../../../src/operator/manifest/apply.ts';
import type { ApplyOptions, ApplyOutcome } from '../../../src/operator/manifest/types.ts';
import type { ControlPlane } from '../../support/control-plane.ts';

export const ann = { name: 'ann', requestId: 'request-1' };

/** Applies the text of a manifest that has the right shape. */
export function apply(
  plane: { services: Pick<ControlPlane['services'], 'db'> },
  text: string,
  options: Partial<ApplyOptions> = {},
  onCommit: () => void = () => {},
): Promise<ApplyOutcome> {
  const { entries, misshapen, faults } = readManifest(text);
  if (faults.length > 0) throw new Error(JSON.stringify(faults));
  return applyManifest({ db: plane.services.db, onCommit }, entries, {
    actor: ann,
    prune: false,
    dryRun: false,
    refused: false,
    misshapen,
    ...options,
  });
}

/** What was done to each object, as in "update agent a". */
export function told(outcome: ApplyOutcome): string[] {
  if (outcome.kind === 'Refused') throw new Error(JSON.stringify(outcome.problems));
  return outcome.changes.map(({ action, noun, name }) => `${action} ${noun} ${name}`);
}

export interface AuditRow {
  actor: string;
  action: string;
  target: string;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
  reason: string | null;
  requestId: string | null;
}

export const auditOf = (plane: ControlPlane): Promise<AuditRow[]> =>
  plane.rows(
    `select actor, action, target, before, after, reason, request_id as "requestId" from runplane.audit_entries order by id`,
  );

/** Every row of configuration, to see that nothing of it changed. */
export const configurationOf = async (plane: ControlPlane): Promise<unknown> => {
  const tables = [
    'throttles',
    'pools',
    'queues',
    'agents',
    'agent_throttles',
    'jobs',
    'job_versions',
    'routes',
  ];
  const found: Record<string, unknown> = {};
  for (const table of [...tables, 'assets', 'audit_entries'])
    found[table] = await plane.rows(
      `select to_jsonb(t) as row from runplane.${table} t order by to_jsonb(t)::text`,
    );
  return found;
};
