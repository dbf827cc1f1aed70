import type { Edge, Page } from '../read/page.ts';
import { builder } from './builder.ts';
import {
  AgentRef,
  ApiTokenRef,
  AssetRef,
  AttemptEventRef,
  AttemptRef,
  AuditEntryRef,
  DeadLetterRef,
  EventRef,
  IngestIncidentRef,
  JobRef,
  KnowledgeRecordRef,
  MaterializationRef,
  RouteRef,
  RunRef,
  TaskRef,
  ThrottleRef,
  WorkerRef,
} from './refs.ts';

/** Arguments of every list. */
export const pageArgs = builder.args((t) => ({
  first: t.int({
    description: 'How many entries from the start, 1 to 200. Default 50; more than 200 is refused.',
  }),
  after: t.field({ type: 'Cursor', description: 'Only entries after this place in the list.' }),
  last: t.int({ description: 'How many entries from the end, 1 to 200. Not together with first.' }),
  before: t.field({ type: 'Cursor', description: 'Only entries before this place in the list.' }),
}));

const PageInfo = builder.objectRef<Page<unknown>>('PageInfo').implement({
  description: 'Where a page lies in its list.',
  fields: (t) => ({
    hasNextPage: t.boolean({
      description: 'Whether entries follow the page.',
      resolve: (page) => page.hasNextPage(),
    }),
    hasPreviousPage: t.boolean({
      description: 'Whether entries come before the page.',
      resolve: (page) => page.hasPreviousPage(),
    }),
    startCursor: t.field({
      type: 'Cursor',
      nullable: true,
      description: 'Of the first entry; null when the page is empty.',
      resolve: ({ edges }) => edges[0]?.cursor,
    }),
    endCursor: t.field({
      type: 'Cursor',
      nullable: true,
      description: 'Of the last entry; null when the page is empty.',
      resolve: ({ edges }) => edges.at(-1)?.cursor,
    }),
  }),
});

type NodeRef<Row> = ReturnType<typeof builder.objectRef<Row>>;

function connection<Row>(name: string, node: NodeRef<Row>) {
  const edge = builder.objectRef<Edge<Row>>(`${name}Edge`);
  edge.implement({
    description: `An entry of a ${name}Connection.`,
    fields: (t) => ({
      cursor: t.field({
        type: 'Cursor',
        description: 'Its place in the list.',
        resolve: (parent) => parent.cursor,
      }),
      node: t.field({
        type: node,
        description: 'What is at this place.',
        resolve: (parent) => parent.node as never,
      }),
    }),
  });
  const ref = builder.objectRef<Page<Row>>(`${name}Connection`);
  ref.implement({
    description: `A page of a list of type ${name}.`,
    fields: (t) => ({
      edges: t.field({
        type: [edge],
        description: 'The entries with their places.',
        resolve: (page) => page.edges,
      }),
      nodes: t.field({
        type: [node],
        description: 'The entries alone.',
        resolve: (page) => page.edges.map((entry) => entry.node) as never,
      }),
      pageInfo: t.field({
        type: PageInfo,
        description: 'What lies before and after.',
        resolve: (page) => page,
      }),
    }),
  });
  return ref;
}

export const RunConnection = connection('Run', RunRef);
export const TaskConnection = connection('Task', TaskRef);
export const AttemptConnection = connection('Attempt', AttemptRef);
export const AttemptEventConnection = connection('AttemptEvent', AttemptEventRef);
export const EventConnection = connection('Event', EventRef);
export const JobConnection = connection('Job', JobRef);
export const AgentConnection = connection('Agent', AgentRef);
export const ThrottleConnection = connection('Throttle', ThrottleRef);
export const RouteConnection = connection('Route', RouteRef);
export const WorkerConnection = connection('Worker', WorkerRef);
export const DeadLetterConnection = connection('DeadLetter', DeadLetterRef);
export const AssetConnection = connection('Asset', AssetRef);
export const MaterializationConnection = connection('Materialization', MaterializationRef);
export const AuditEntryConnection = connection('AuditEntry', AuditEntryRef);
export const ApiTokenConnection = connection('ApiToken', ApiTokenRef);
export const KnowledgeRecordConnection = connection('KnowledgeRecord', KnowledgeRecordRef);
export const IngestIncidentConnection = connection('IngestIncident', IngestIncidentRef);
