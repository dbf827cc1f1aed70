import { type DocumentNode, type GraphQLField, type GraphQLObjectType, isObjectType, parse } from 'graphql';
import { type Authority, allScopes, type Scope } from '../../src/domain/credential.ts';
import { scopeOfType } from '../../src/graphql/guards.ts';
import { actor, type ControlPlane } from '../support/control-plane.ts';
import { Client, schema } from './client.ts';
import { marker } from './payloads.ts';
import { type Leaf, leavesOf } from './walk.ts';

export type Root = GraphQLField<unknown, unknown>;
const fieldsOf = (type: GraphQLObjectType | null | undefined): Root[] =>
  Object.values(type?.getFields() ?? {}) as Root[];
export const questions = fieldsOf(schema.getQueryType());
export const commands = fieldsOf(schema.getMutationType());
export const streams = fieldsOf(schema.getSubscriptionType());

/** The scope that the description of a root field names; null: none, or the lease token is the credential. */
export function scopeOf({ description }: Root): Scope | null {
  const named = /Needs ([A-Z_]+)/.exec(description ?? '')?.[1];
  return allScopes.find((scope) => scope === named) ?? null;
}

/** Somebody with these scopes, or with a token. */
export type Caller = readonly Scope[] | Authority;

/** What a root field answered. */
export interface Walked {
  root: string;
  data: Record<string, unknown> | null;
  errors: readonly { message: string; extensions?: Record<string, unknown> }[];
}

/** An operation with one root field. It is valid by its making, and parsed once for all callers. */
export interface Asked {
  root: string;
  document: DocumentNode;
}
export const operationOn = (operation: string, { name }: Root, selection: string): Asked => ({
  root: name,
  document: parse(`${operation} { ${selection} }`, { noLocation: true }),
});

export async function ask(plane: ControlPlane, as: Caller, operations: readonly Asked[]): Promise<Walked[]> {
  const walked: Walked[] = [];
  for (const { root, document } of operations) {
    const { data, errors = [] } = await new Client(plane, as).executeValid(document);
    walked.push({ root, data: data ?? null, errors });
  }
  return walked;
}

export const leaves = (walked: readonly Walked[]): Leaf[] =>
  walked.flatMap(({ data, root }, i) => leavesOf({ __typename: root, ...data }, `${i}`));

const encodedMarker = Buffer.from(marker).toString('base64');
export function tells(value: unknown): boolean {
  const text = JSON.stringify(value ?? null);
  return text.includes(marker) || text.includes(encodedMarker);
}

/** Names of the objects that something was told of. */
export const objectsIn = (told: readonly Leaf[]): Set<string> =>
  new Set(
    told
      .filter(
        ({ field, value }) => field.endsWith('.__typename') && isObjectType(schema.getType(String(value))),
      )
      .map(({ value }) => String(value)),
  );

/** What is told of objects that a caller with this scope alone may not see. */
export const hiddenFrom = (scope: Scope, told: readonly Leaf[]): Leaf[] =>
  told.filter(({ field }) => {
    const type = schema.getType(field.split('.')[0] ?? '');
    const needed = type ? scopeOfType(type) : null;
    return needed !== null && needed !== scope;
  });

export async function tokenWith(plane: ControlPlane, scopes: readonly Scope[]): Promise<Authority> {
  const { apiTokens, credentials } = plane.services;
  const created = await apiTokens.create({ name: scopes.join(), scopes: [...scopes] }, actor);
  const authority = 'secret' in created ? await credentials.ofToken(created.secret) : null;
  if (!authority) throw new Error(`no token with ${scopes.join()}`);
  return authority;
}
