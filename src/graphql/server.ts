import type { Viewer } from '../domain/credential.ts';
import { limits } from '../domain/limits.ts';
import { builder } from './builder.ts';
import type { ServerFacts } from './context.ts';
import { ScopeEnum } from './enums.ts';
import { needs } from './needs.ts';

const contract = 1;

const ServerLimit = builder.objectRef<{ name: string; value: number }>('ServerLimit').implement({
  description: 'A limit of the server. Refusals tell the same number.',
  fields: (t) => ({
    name: t.exposeString('name', {
      description:
        'What is limited, as batch or queryCost; names that end with Bytes or Seconds tell the unit.',
    }),
    value: t.exposeFloat('value', { description: 'The most that is allowed; .min and .max are a range.' }),
  }),
});

/** Every limit that this server refuses by: the fixed ones, and what its settings say. */
function limitsOf(server: ServerFacts): { name: string; value: number }[] {
  const { authenticationOff, streamsPerToken, requestsPerMinute } = server;
  const all = {
    ...limits,
    ...(!authenticationOff && { streamsPerToken }),
    ...(!authenticationOff && requestsPerMinute > 0 && { requestsPerMinute }),
  };
  return Object.entries(all).flatMap(([name, value]) =>
    typeof value === 'number'
      ? [{ name, value }]
      : Object.entries(value).map(([end, bound]) => ({ name: `${name}.${end}`, value: bound })),
  );
}

const ServerInfo = builder.objectRef<ServerFacts & { now: Date }>('ServerInfo').implement({
  description: 'The server and its limits.',
  fields: (t) => ({
    version: t.exposeString('version', { description: 'Version of the software.' }),
    contract: t.int({
      description: 'Version of this schema: names are only added within it.',
      resolve: () => contract,
    }),
    now: t.expose('now', {
      type: 'DateTime',
      description: 'The time by which everything is decided: the database has it.',
    }),
    maxBatch: t.int({ description: 'Entries of one batch mutation.', resolve: () => limits.batch }),
    maxPage: t.int({ description: 'Entries of one page.', resolve: () => limits.page }),
    maxBodyBytes: t.int({ description: 'Bytes of a request body.', resolve: () => limits.bodyBytes }),
    maxResultBytes: t.int({
      description: 'Bytes of a request body that only reports results.',
      resolve: () => limits.resultBodyBytes,
    }),
    limits: t.field({
      type: [ServerLimit],
      description:
        'Every limit by its name, those of queries and of tokens too; docs/api-limits.md tells what they mean. One that is off is left out.',
      resolve: limitsOf,
    }),
    maxWaitSeconds: t.float({
      description: 'Longest wait of claimTasks, in seconds.',
      resolve: () => limits.waitSeconds,
    }),
  }),
});

const ViewerRef = builder.objectRef<Viewer>('Viewer').implement({
  description: 'Who asks.',
  fields: (t) => ({
    name: t.exposeString('name', { description: 'Name of the credential.' }),
    scopes: t.field({
      type: [ScopeEnum],
      description: 'What it allows.',
      resolve: ({ scopes }) => [...scopes],
    }),
  }),
});

builder.queryFields((t) => ({
  server: t.field({
    type: ServerInfo,
    ...needs(null),
    description: 'The server and its limits. Needs no scope.',
    resolve: async (_, __, { services }) => ({
      ...services.server,
      now: await services.read.now(),
    }),
  }),
  viewer: t.field({
    type: ViewerRef,
    ...needs(null),
    description: 'Who asks. Needs no scope.',
    resolve: (_, __, { viewer }) => viewer,
  }),
}));
