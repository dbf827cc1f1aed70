import { restrictionEscaped, scopeLacked } from '../domain/credential.ts';
import { fromPublicId } from '../domain/ids.ts';
import type { Forbidden } from '../domain/problems.ts';
import { notFound } from '../domain/problems.ts';
import type { CreateApiTokenInput, CreateApiTokenSuccess } from '../operator/api-tokens.ts';
import { builder } from './builder.ts';
import { ApiTokenConnection, pageArgs } from './connections.ts';
import type { GraphQLContext } from './context.ts';
import { DeleteResult, withPublicDeleted } from './delete-result.ts';
import { ScopeEnum } from './enums.ts';
import { needs } from './needs.ts';
import { ForbiddenRef, InvalidInputRef } from './problems.ts';
import { ApiTokenRef, idOf, Node } from './refs.ts';
import { change } from './save.ts';
import { forbidden } from './scopes.ts';

const restrictions = {
  agents: 'Names of the agents that WORK may claim for; null is all.',
  jobs: 'Names of the jobs that LAUNCH may launch and rerun; null is all.',
  topics: 'Patterns of the topics that PUBLISH may publish to; null is all.',
};

ApiTokenRef.implement({
  description: 'A credential of a client: all of it but the secret. Needs ADMIN.',
  interfaces: [Node],
  ...needs('ADMIN'),
  fields: (t) => ({
    id: t.id(idOf('tok')),
    name: t.exposeString('name', { description: 'Who it is for; the actor in the audit log.' }),
    scopes: t.field({
      type: [ScopeEnum],
      description: 'What it allows.',
      resolve: ({ scopes }) => scopes,
    }),
    agents: t.exposeStringList('agents', { nullable: true, description: restrictions.agents }),
    jobs: t.exposeStringList('jobs', { nullable: true, description: restrictions.jobs }),
    topics: t.exposeStringList('topics', { nullable: true, description: restrictions.topics }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was created.' }),
    expiresAt: t.expose('expiresAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it stops to be valid; null is never.',
    }),
    lastUsedAt: t.expose('lastUsedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it was last used, to about a minute; null is never.',
    }),
    revokedAt: t.expose('revokedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it was revoked; null when it was not.',
    }),
  }),
});

const CreateApiTokenInputRef = builder.inputType('CreateApiTokenInput', {
  description: 'A token to create. Nobody grants what they lack.',
  fields: (t) => ({
    name: t.string({ required: true, description: 'Who it is for, 1 to 200 bytes.' }),
    scopes: t.field({
      type: [ScopeEnum],
      required: true,
      description: 'What it allows; at least one, and none that the caller lacks.',
    }),
    agents: t.stringList({
      description: `${restrictions.agents} 1 to 200 of them, with the scope WORK or ADMIN.`,
    }),
    jobs: t.stringList({
      description: `${restrictions.jobs} 1 to 200 of them, with the scope LAUNCH or ADMIN.`,
    }),
    topics: t.stringList({
      description: `${restrictions.topics} * is one token, > the rest. 1 to 200 of them, with the scope PUBLISH or ADMIN.`,
    }),
    expiresAt: t.field({ type: 'DateTime', description: 'When it stops to be valid; absent is never.' }),
  }),
});

const CreateApiTokenSuccessRef = builder.objectRef<CreateApiTokenSuccess>('CreateApiTokenSuccess').implement({
  description: 'The token exists. Its secret is shown only here: what is stored is a hash.',
  ...needs('ADMIN'),
  fields: (t) => ({
    token: t.field({
      type: ApiTokenRef,
      description: 'The token.',
      resolve: async ({ id }, _, { loaders }) => {
        const token = await loaders.apiToken(id);
        if (!token) throw new Error(`The token ${id} is gone although it was just created.`);
        return token;
      },
    }),
    secret: t.exposeString('secret', {
      description: 'What the client sends as Authorization: Bearer; rp_….',
    }),
  }),
});

const CreateApiTokenResult = builder.unionType('CreateApiTokenResult', {
  description: 'What became of creating a token.',
  types: [CreateApiTokenSuccessRef, InvalidInputRef, ForbiddenRef],
  resolveType: ({ kind }) => kind,
});

/** Refuses to give away what the caller does not have. */
function refusedGrant({ viewer }: GraphQLContext, input: CreateApiTokenInput): Forbidden | null {
  const lacked = scopeLacked(viewer, input.scopes);
  if (lacked) return forbidden(lacked, `Only who has the scope ${lacked} can grant it.`);
  const { agents = null, jobs = null, topics = null } = input;
  const escaped = restrictionEscaped(viewer, { agents, jobs, topics }, input.scopes);
  return (
    escaped &&
    forbidden(
      'ADMIN',
      `The caller is restricted to some ${escaped}: what it grants must be too, to no others.`,
    )
  );
}

builder.queryField('apiTokens', (t) =>
  t.field({
    type: ApiTokenConnection,
    nullable: true,
    description: 'API tokens, newest first, also expired and revoked ones. Needs ADMIN.',
    args: pageArgs,
    resolve: (_, page, { services }) => services.read.apiTokens.list(page),
  }),
);

builder.mutationFields((t) => ({
  createApiToken: t.field({
    type: CreateApiTokenResult,
    nullable: true,
    description:
      'Creates a credential and shows its secret, once. Needs ADMIN, and every scope that it grants.',
    args: { input: t.arg({ type: CreateApiTokenInputRef, required: true, description: 'The token.' }) },
    resolve: (_, { input }, context) =>
      change(
        context,
        'ADMIN',
        async (actor) => refusedGrant(context, input) ?? context.services.apiTokens.create(input, actor),
      ),
  }),
  revokeApiToken: t.field({
    type: DeleteResult,
    nullable: true,
    description:
      'Makes a token invalid for ever: at once on the replica that is asked, within 30 seconds on all, for streams and sessions too. One that is revoked stays so. Needs ADMIN.',
    args: { id: t.arg.id({ required: true, description: 'tok_…' }) },
    resolve: (_, { id }, context) =>
      change(context, 'ADMIN', async (actor) => {
        const uuid = fromPublicId('tok', id);
        if (uuid === null) return notFound('API token', id);
        return withPublicDeleted('tok', await context.services.apiTokens.revoke(uuid, actor));
      }),
  }),
}));
