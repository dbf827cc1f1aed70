import {
  type DocumentNode,
  type ExecutionResult,
  execute,
  type GraphQLCompositeType,
  getNamedType,
  graphql,
  isCompositeType,
  isInterfaceType,
  isNonNullType,
  isObjectType,
  isUnionType,
  parse,
  subscribe,
} from 'graphql';
import {
  type Authority,
  allScopes,
  anonymous,
  type Scope,
  type Viewer,
} from '../../src/domain/credential.ts';
import type { GraphQLContext } from '../../src/graphql/context.ts';
import { buildSchema } from '../../src/graphql/schema.ts';
import { createLoaders } from '../../src/read/loaders.ts';
import { createRead } from '../../src/read/read.ts';
import type { ControlPlane } from '../support/control-plane.ts';

/** Data of an answer: JSON, whose form the test itself checks. */
export type Answer = ReturnType<typeof JSON.parse>;

export const schema = buildSchema();

/** A caller with these scopes, without a credential. */
export const viewerWith = (scopes: readonly Scope[], more: Partial<Viewer> = {}): Viewer => ({
  ...anonymous.viewer,
  name: 'tester',
  scopes,
  signedIn: true,
  ...more,
});

/** Executes operations on the schema without a transport, as a caller with the given scopes. */
export class Client {
  readonly #plane: ControlPlane;
  readonly #viewer: Viewer;
  readonly #authority: Authority;

  /** With scopes: as somebody who has them. With an authority: as whom its credential names. */
  constructor(plane: ControlPlane, as: readonly Scope[] | Authority = allScopes) {
    this.#plane = plane;
    this.#authority = 'viewer' in as ? as : anonymous;
    this.#viewer = 'viewer' in as ? as.viewer : viewerWith(as);
  }

  execute(source: string, variableValues: Record<string, unknown> = {}): Promise<ExecutionResult<Answer>> {
    return graphql({ schema, source, variableValues, contextValue: this.#context() }) as Promise<
      ExecutionResult<Answer>
    >;
  }

  /** The same of a document that is known to be valid, which takes time to find out. */
  executeValid(document: DocumentNode): Promise<ExecutionResult<Answer>> {
    return execute({ schema, document, contextValue: this.#context() }) as Promise<ExecutionResult<Answer>>;
  }

  /** The data; an error fails the test. */
  async query(source: string, variables: Record<string, unknown> = {}): Promise<Answer> {
    const { data, errors } = await this.execute(source, variables);
    if (errors)
      throw new Error(errors.map((error) => `${error.path?.join('.')}: ${error.message}`).join('\n'));
    return data;
  }

  /** extensions of the first error. */
  async refusal(source: string, variables: Record<string, unknown> = {}): Promise<object | undefined> {
    return (await this.execute(source, variables)).errors?.[0]?.extensions;
  }

  subscribe(source: string, variableValues: Record<string, unknown> = {}, lastEventId: string | null = null) {
    const contextValue = { ...this.#context(), lastEventId };
    return subscribe({ schema, document: parse(source), variableValues, contextValue });
  }

  #context(): GraphQLContext {
    const read = createRead(this.#plane.database.db);
    return {
      services: {
        ...this.#plane.services,
        read,
        server: {
          version: '1.2.3',
          authenticationOff: false,
          streamsPerToken: 100,
          requestsPerMinute: 0,
        },
      },
      requestId: 'request',
      signal: () => new AbortController().signal,
      viewer: this.#viewer,
      authority: this.#authority,
      loaders: createLoaders(read),
    };
  }
}

/** A selection of everything that a type offers without arguments, to a depth. */
export function everything(typeName: string, depth: number): string {
  const type = schema.getType(typeName);
  if (!isCompositeType(type)) throw new Error(`${typeName} has no fields.`);
  return select(type, depth);
}

function select(type: GraphQLCompositeType, depth: number): string {
  if (isUnionType(type))
    return `{ __typename ${type
      .getTypes()
      .map((t) => `... on ${t.name} ${select(t, depth)}`)
      .join(' ')} }`;
  const fields = isObjectType(type) || isInterfaceType(type) ? Object.values(type.getFields()) : [];
  const selected = fields.flatMap((field) => {
    if (field.args.some((arg) => isNonNullType(arg.type) && arg.defaultValue === undefined)) return [];
    const named = getNamedType(field.type);
    if (!isCompositeType(named)) return [field.name];
    return depth > 0 ? [`${field.name} ${select(named, depth - 1)}`] : [];
  });
  return `{ __typename ${selected.join(' ')} }`;
}
