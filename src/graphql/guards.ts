import {
  defaultFieldResolver,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isInterfaceType,
  isIntrospectionType,
  isNonNullType,
  isObjectType,
} from 'graphql';
import type { MessageStream } from '../changelog/types.ts';
import { allScopes, type Scope } from '../domain/credential.ts';
import type { GraphQLContext } from './context.ts';
import { lacksScope, unauthenticated } from './errors.ts';
import { has } from './scopes.ts';
import { WatchedStream } from './watched-stream.ts';

type Field = GraphQLField<unknown, GraphQLContext>;

/**
 * Puts the scopes on every way into the data, whatever field leads there. What has an id needs READ; so does each
 * question and stream, unless it says something else with `needs`. Without the scope a question or stream is an error, and a
 * field of a command's result is null, so that what committed is answered all the same. Commands refuse with a value
 * and check on their own; only that the credential still stands is looked at for each of them. A field that is added
 * later is guarded without a word.
 */
export function guarded(schema: GraphQLSchema): GraphQLSchema {
  const [query, mutation, subscription] = [
    schema.getQueryType(),
    schema.getMutationType(),
    schema.getSubscriptionType(),
  ];
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type) || isIntrospectionType(type)) continue;
    for (const field of Object.values(type.getFields()) as Field[]) {
      if (type === query) guardQuestion(field);
      else if (type === mutation) guardCommand(field);
      else if (type === subscription) guardStream(field);
      else guardEntrance(type, field);
    }
  }
  return schema;
}

function guardQuestion(field: Field): void {
  const scope = scopeOfRoot(field);
  if (scope === null) return;
  const resolve = field.resolve ?? defaultFieldResolver;
  field.resolve = (source, args, context, info) => {
    if (!has(context, scope)) throw lacksScope(scope);
    return resolve(source, args, context, info);
  };
}

/** The commands of a request follow each other: those before may have waited long, or revoked the very credential. */
function guardCommand(field: Field): void {
  const resolve = field.resolve ?? defaultFieldResolver;
  field.resolve = async (source, args, context, info) => {
    if (!(await context.authority.stands())) throw unauthenticated();
    return resolve(source, args, context, info);
  };
}

function guardStream(field: Field): void {
  const scope = scopeOfRoot(field);
  const { subscribe } = field;
  if (!subscribe) throw new Error(`The subscription ${field.name} has no stream.`);
  field.subscribe = async (source, args, context, info) => {
    if (scope !== null && !has(context, scope)) throw lacksScope(scope);
    return new WatchedStream(
      (await subscribe(source, args, context, info)) as MessageStream<unknown>,
      context.authority,
    );
  };
}

/** A field that leads from where no scope is needed, or another one, to what needs one. */
function guardEntrance(from: GraphQLObjectType, field: Field): void {
  const scope = scopeOfField(field);
  if (scope === null || scope === scopeOfType(from)) return;
  const resolve = field.resolve ?? defaultFieldResolver;
  const nullable = !isNonNullType(field.type);
  field.resolve = (source, args, context, info) => {
    if (has(context, scope)) return resolve(source, args, context, info);
    if (nullable) return null;
    throw lacksScope(scope);
  };
}

const scopeOfRoot = (field: Field): Scope | null =>
  declared(field) === undefined ? (scopeOfType(getNamedType(field.type)) ?? 'READ') : scopeOfField(field);

function scopeOfField(field: Field): Scope | null {
  const own = declared(field);
  return own === undefined ? scopeOfType(getNamedType(field.type)) : own;
}

/** The scope that everything of a type needs; null: it says nothing that its way has not allowed. */
export function scopeOfType(type: GraphQLNamedType): Scope | null {
  const own = declared(type);
  if (own !== undefined) return own;
  if (isInterfaceType(type)) return type.name === 'Node' ? 'READ' : null;
  if (!isObjectType(type)) return null;
  if (type.getInterfaces().some(({ name }) => name === 'Node')) return 'READ';
  // Pages and their entries are as what they hold.
  const held = /(Connection|Edge)$/.test(type.name) && (type.getFields().nodes ?? type.getFields().node);
  return held ? scopeOfType(getNamedType(held.type)) : null;
}

function declared({ extensions }: { extensions: object }): Scope | null | undefined {
  if (!('scope' in extensions)) return undefined;
  return allScopes.find((scope) => scope === extensions.scope) ?? null;
}
