import { createHash } from 'node:crypto';
import type { InlineHandler } from '../../src/dispatch/handlers.ts';
import { toPublicId } from '../../src/domain/ids.ts';
import { isTerminal } from '../../src/domain/status.ts';
import type { PublishEventInput, PublishEventOutcome, PublishEventSuccess } from '../../src/intake/types.ts';
import { createKnowledgeHandlers, installKnowledge } from '../../src/knowledge/index.ts';
import { createConfiguration } from '../../src/operator/configuration.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { createTestDatabase } from '../support/database.ts';

export interface Published extends PublishEventSuccess {
  /** As handlers and clients see it. */
  publicId: string;
}

/** A control plane with the knowledge pipeline installed, executing its tasks. */
export class Pipeline {
  readonly plane: ControlPlane;

  private constructor(plane: ControlPlane) {
    this.plane = plane;
  }

  static async start(options: { handlers?: Record<string, InlineHandler> } = {}): Promise<Pipeline> {
    const database = await createTestDatabase();
    // Before the scheduler starts, so that it knows the agents from its first look on.
    await installKnowledge({ configuration: createConfiguration({ db: database.db, onCommit: () => {} }) });
    const handlers = createKnowledgeHandlers(() => plane.services.db);
    const plane: ControlPlane = await ControlPlane.start({
      database,
      scheduler: true,
      handlers: { ...Object.fromEntries(handlers), ...options.handlers },
    });
    return new Pipeline(plane);
  }

  /** Publishes one event and waits until everything that it launched is over. */
  async publish(topic: string, payload: unknown, more: Partial<PublishEventInput> = {}): Promise<Published> {
    const [outcome] = await this.publishAll([{ topic, payload, ...more }]);
    if (outcome?.kind !== 'PublishEventSuccess') throw new Error(JSON.stringify(outcome));
    return { ...outcome, publicId: toPublicId('evt', outcome.eventId) };
  }

  async publishAll(events: readonly PublishEventInput[]): Promise<PublishEventOutcome[]> {
    const before = await this.plane.services.changeLog.currentCursor();
    const outcomes = await this.plane.services.intake.publishEvents(events);
    const runIds = outcomes.flatMap((outcome) => {
      if (outcome.kind !== 'PublishEventSuccess') return [];
      // What a repeated event launched may be older than the position from which its runs are watched.
      return outcome.replayed ? [] : outcome.runIds;
    });
    await this.finished(runIds, before);
    return outcomes;
  }

  async launch(job: string, config: unknown): Promise<string> {
    const [outcome] = await this.plane.services.intake.launchRuns([{ job, config }]);
    if (outcome?.kind !== 'LaunchRunSuccess') throw new Error(JSON.stringify(outcome));
    await this.finished([outcome.runId], outcome.cursor);
    return outcome.runId;
  }

  private async finished(runIds: readonly string[], cursor: string): Promise<void> {
    const open = new Set(runIds);
    if (open.size === 0) return;
    for await (const { changes } of this.plane.services.changeLog.runChanges({ ids: runIds }, cursor)) {
      for (const { runId, toStatus } of changes) {
        if (isTerminal(toStatus)) open.delete(runId);
      }
      if (open.size === 0) break;
    }
  }

  async row<Row extends object>(table: string): Promise<Row> {
    const rows = await this.plane.rows<Row>(`select * from runplane.${table}`);
    if (rows.length !== 1 || !rows[0]) throw new Error(`${table} has ${rows.length} rows`);
    return rows[0];
  }

  async count(table: string): Promise<number> {
    const [row] = await this.plane.rows<{ count: number }>(
      `select count(*)::int as count from runplane.${table}`,
    );
    return row?.count ?? 0;
  }

  async statuses(): Promise<Record<string, string>> {
    const rows = await this.plane.rows<{ job: string; status: string }>(
      'select j.name as job, r.status::text from runplane.runs r join runplane.jobs j on j.id = r.job_id order by 1',
    );
    return Object.fromEntries(rows.map(({ job, status }) => [job, status]));
  }
}

export const topics = {
  chat: 'pipeline.knowledge.chat.persist',
  embedding: 'pipeline.knowledge.embedding',
  retrieve: 'pipeline.knowledge.retrieve',
  compose: 'pipeline.knowledge.compose',
};

/** The first 32 hexadecimal digits of a text's SHA-256. */
export const hash = (text: string): string =>
  createHash('sha256').update(text, 'utf8').digest('hex').slice(0, 32);

/** Everything that was materialized, in order, with what it was made from. */
export const lineageSql = `
select a.key as asset, m.partition, t.step, i.key as input
  from runplane.materializations m
  join runplane.assets a on a.id = m.asset_id
  join runplane.tasks t on t.id = m.task_id
  left join runplane.materialization_inputs x on x.materialization_id = m.id
  left join runplane.materializations n on n.id = x.input_id
  left join runplane.assets i on i.id = n.asset_id
 order by m.id`;
