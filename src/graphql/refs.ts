import type { AttemptEvent } from '../changelog/types.ts';
import { type IdPrefix, toPublicId } from '../domain/ids.ts';
import type { AgentRow } from '../read/agents.ts';
import type { ApiTokenRow } from '../read/api-tokens.ts';
import type { AssetRow } from '../read/assets.ts';
import type { AttemptRow } from '../read/attempts.ts';
import type { AuditRow } from '../read/audit.ts';
import type { DeadLetterRow } from '../read/dead-letters.ts';
import type { EventRow } from '../read/events.ts';
import type { IngestIncidentRow } from '../read/ingest.ts';
import type { JobRow } from '../read/jobs.ts';
import type { KnowledgeRow } from '../read/knowledge.ts';
import type { MaterializationRow } from '../read/materializations.ts';
import type { PoolRow, QueueRow } from '../read/queues.ts';
import type { RouteRow } from '../read/routes.ts';
import type { RunRow } from '../read/runs.ts';
import type { TaskRow } from '../read/tasks.ts';
import type { ThrottleRow } from '../read/throttles.ts';
import type { WorkerRow } from '../read/workers.ts';
import { builder } from './builder.ts';

// Types that refer to each other meet here, so that their files need not import each other.
export const RunRef = builder.objectRef<RunRow>('Run');
export const TaskRef = builder.objectRef<TaskRow>('Task');
export const AttemptRef = builder.objectRef<AttemptRow>('Attempt');
export const AttemptEventRef = builder.objectRef<AttemptEvent>('AttemptEvent');
export const EventRef = builder.objectRef<EventRow>('Event');
export const JobRef = builder.objectRef<JobRow>('Job');
export const AgentRef = builder.objectRef<AgentRow>('Agent');
export const ThrottleRef = builder.objectRef<ThrottleRow>('Throttle');
export const QueueRef = builder.objectRef<QueueRow>('Queue');
export const PoolRef = builder.objectRef<PoolRow>('Pool');
export const RouteRef = builder.objectRef<RouteRow>('Route');
export const WorkerRef = builder.objectRef<WorkerRow>('Worker');
export const DeadLetterRef = builder.objectRef<DeadLetterRow>('DeadLetter');
export const AssetRef = builder.objectRef<AssetRow>('Asset');
export const MaterializationRef = builder.objectRef<MaterializationRow>('Materialization');
export const AuditEntryRef = builder.objectRef<AuditRow>('AuditEntry');
export const KnowledgeRecordRef = builder.objectRef<KnowledgeRow>('KnowledgeRecord');
export const IngestIncidentRef = builder.objectRef<IngestIncidentRow>('IngestIncident');
export const ApiTokenRef = builder.objectRef<ApiTokenRow>('ApiToken');

export const Node = builder.interfaceRef<{ id: string }>('Node').implement({
  description: 'Everything that has an identity of its own.',
  fields: (t) => ({
    id: t.exposeID('id', {
      description: 'Its kind and a UUID that is sortable by time, such as run_01j9…; unique.',
    }),
  }),
});

/** The public id of a row. */
export const idOf = (prefix: IdPrefix) => ({
  description: `Its identity, ${prefix}_…; sortable by time of creation.`,
  resolve: ({ id }: { id: string }) => toPublicId(prefix, id),
});
