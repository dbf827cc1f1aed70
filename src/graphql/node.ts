import type { GraphQLNamedType } from 'graphql';
import { type IdPrefix, parsePublicId } from '../domain/ids.ts';
import type { Loaders } from '../read/loaders.ts';
import { builder } from './builder.ts';
import { scopeOfType } from './guards.ts';
import { Node } from './refs.ts';
import { need } from './scopes.ts';

interface Kind {
  type: string;
  load: (loaders: Loaders, uuid: string) => Promise<{ id: string } | null>;
}

const kinds: Partial<Record<IdPrefix, Kind>> = {
  run: { type: 'Run', load: (loaders, uuid) => loaders.run(uuid) },
  task: { type: 'Task', load: (loaders, uuid) => loaders.task(uuid) },
  att: { type: 'Attempt', load: (loaders, uuid) => loaders.attempt(uuid) },
  evt: { type: 'Event', load: (loaders, uuid) => loaders.event(uuid) },
  job: { type: 'Job', load: (loaders, uuid) => loaders.job(uuid) },
  agent: { type: 'Agent', load: (loaders, uuid) => loaders.agent(uuid) },
  thr: { type: 'Throttle', load: (loaders, uuid) => loaders.throttle(uuid) },
  queue: { type: 'Queue', load: (loaders, uuid) => loaders.queue(uuid) },
  pool: { type: 'Pool', load: (loaders, uuid) => loaders.pool(uuid) },
  route: { type: 'Route', load: (loaders, uuid) => loaders.route(uuid) },
  dlq: { type: 'DeadLetter', load: (loaders, uuid) => loaders.deadLetter(uuid) },
  asset: { type: 'Asset', load: (loaders, uuid) => loaders.asset(uuid) },
  mat: { type: 'Materialization', load: (loaders, uuid) => loaders.materialization(uuid) },
  wrk: { type: 'Worker', load: (loaders, uuid) => loaders.worker(uuid) },
  tok: { type: 'ApiToken', load: (loaders, uuid) => loaders.apiToken(uuid) },
  audit: { type: 'AuditEntry', load: (loaders, uuid) => loaders.auditEntry(uuid) },
};

builder.queryField('node', (t) =>
  t.field({
    type: Node,
    nullable: true,
    description: 'Anything by its id; null when there is none. Needs READ, and ADMIN for credentials.',
    args: { id: t.arg.id({ required: true, description: 'An id of any kind.' }) },
    resolve: async (_, { id }, context, { schema }) => {
      const given = parsePublicId(id);
      const kind = given && Object.hasOwn(kinds, given.prefix) && kinds[given.prefix];
      // A kind may need more than what everything with an id needs.
      const scope = kind && scopeOfType(schema.getType(kind.type) as GraphQLNamedType);
      if (scope) need(context, scope);
      const row = kind && (await kind.load(context.loaders, given.uuid));
      // The name tells the executor which of the types of Node it is.
      return row ? { ...row, __typename: kind.type } : null;
    },
  }),
);
