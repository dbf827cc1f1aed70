import {
  type ArgumentNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isInterfaceType,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  SchemaMetaFieldDef,
  type SelectionSetNode,
  TypeMetaFieldDef,
  type ValueNode,
} from 'graphql';
import { limits } from '../domain/limits.ts';
import { pageTooLarge } from '../read/page.ts';
import { batchTooLarge } from './errors.ts';

export type Variables = Readonly<Record<string, unknown>>;

interface Measures {
  /** Values that the answer may have at most, objects and lists counted too. */
  cost: number;
  depth: number;
  /** Fields of this very level. */
  fields: number;
}

const nothing: Measures = { cost: 0, depth: 0, fields: 0 };

/**
 * Adds up an operation in one walk. A fragment is walked once for each size of page that it is used for, so the time
 * does not grow with what fragments multiply to.
 */
export class OperationMeasurement {
  readonly #schema: GraphQLSchema;
  readonly #operation: OperationDefinitionNode;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #variables: Variables;
  readonly #defaults: ReadonlyMap<string, ValueNode>;
  readonly #measured = new Map<string, Measures>();
  readonly #within = new Set<string>();
  #level = 0;
  #excess: GraphQLError | null = null;

  constructor(
    schema: GraphQLSchema,
    document: DocumentNode,
    operation: OperationDefinitionNode,
    variables: Variables | null,
  ) {
    this.#schema = schema;
    this.#operation = operation;
    this.#fragments = new Map(
      document.definitions.flatMap((definition) =>
        definition.kind === Kind.FRAGMENT_DEFINITION ? [[definition.name.value, definition]] : [],
      ),
    );
    this.#defaults = new Map(
      operation.variableDefinitions?.flatMap(({ variable, defaultValue }) =>
        defaultValue ? [[variable.name.value, defaultValue]] : [],
      ),
    );
    this.#variables = variables ?? {};
  }

  /** excess: of the first argument that asks for more than a page may have, or gives more than a batch may have. */
  measure(): Measures & { excess: GraphQLError | null } {
    const { operation, selectionSet } = this.#operation;
    // A message of a stream is a page at most.
    const page = operation === OperationTypeNode.SUBSCRIPTION ? limits.page : null;
    const measures = this.#selections(selectionSet, this.#schema.getRootType(operation) ?? null, page);
    return { ...measures, excess: this.#excess };
  }

  #selections(
    { selections }: SelectionSetNode,
    parent: GraphQLNamedType | null,
    page: number | null,
  ): Measures {
    let { cost, depth, fields } = nothing;
    for (const selection of selections) {
      const part =
        selection.kind === Kind.FIELD
          ? this.#field(selection, parent, page)
          : selection.kind === Kind.INLINE_FRAGMENT
            ? this.#selections(
                selection.selectionSet,
                this.#type(selection.typeCondition?.name.value, parent),
                page,
              )
            : this.#fragment(selection.name.value, page);
      cost += part.cost;
      depth = Math.max(depth, part.depth);
      fields += part.fields;
    }
    return { cost, depth, fields };
  }

  #fragment(name: string, page: number | null): Measures {
    const key = `${name} ${page}`;
    const known = this.#measured.get(key);
    if (known) return known;
    const fragment = this.#fragments.get(name);
    // A cycle is for validation to refuse.
    if (!fragment || this.#within.has(name)) return nothing;
    this.#within.add(name);
    const measures = this.#selections(
      fragment.selectionSet,
      this.#type(fragment.typeCondition.name.value, null),
      page,
    );
    this.#within.delete(name);
    this.#measured.set(key, measures);
    return measures;
  }

  #field(node: FieldNode, parent: GraphQLNamedType | null, page: number | null): Measures {
    if (!node.selectionSet) return { cost: 1, depth: 1, fields: 1 };
    const field = this.#definition(node.name.value, parent);
    const type = field ? getNamedType(field.type) : null;
    const isList = field !== null && isListType(getNullableType(field.type));
    this.#excess ??= this.#excessOf(node, field, isList);
    const size = this.#sizeOf(node, field, isList) ?? page;
    // What is too deep already is not followed down: how deep it is cannot be worth a full stack.
    if (this.#level > limits.queryDepth) return { cost: 1, depth: 1, fields: 1 };
    this.#level++;
    const below = this.#selections(node.selectionSet, type, isList ? null : size);
    this.#level--;
    const times = isList ? (size ?? limits.assumedListSize) : 1;
    return { cost: 1 + times * below.cost, depth: 1 + below.depth, fields: 1 };
  }

  /** How many entries the arguments ask for; null: they do not say. */
  #sizeOf(node: FieldNode, field: GraphQLField<unknown, unknown> | null, isList: boolean): number | null {
    const given = (name: string): number | null => this.#entriesOf(node.arguments, name);
    const asked = given('first') ?? given('last') ?? given('limit') ?? given('input');
    if (asked !== null) return asked;
    if (isList) {
      for (const { name, type } of field?.args ?? []) {
        const entries = isListType(getNullableType(type)) ? given(name) : null;
        if (entries !== null) return entries;
      }
    }
    return field?.args.some(({ name }) => name === 'first') ? limits.defaultPage : null;
  }

  #excessOf(
    node: FieldNode,
    field: GraphQLField<unknown, unknown> | null,
    isList: boolean,
  ): GraphQLError | null {
    for (const { name, type } of field?.args ?? []) {
      const isPage = name === 'first' || name === 'last';
      // A batch answers each entry.
      if (!isPage && !(isList && isListType(getNullableType(type)))) continue;
      const entries = this.#entriesOf(node.arguments, name);
      if (entries === null || entries <= (isPage ? limits.page : limits.batch)) continue;
      const { message, extensions } = isPage ? pageTooLarge(name, entries) : batchTooLarge(name, entries);
      // It says where it stands in the document: there may be many pages.
      return new GraphQLError(message, { nodes: node, extensions });
    }
    return null;
  }

  #entriesOf(nodes: readonly ArgumentNode[] | undefined, name: string): number | null {
    const argument = nodes?.find((node) => node.name.value === name);
    return argument ? this.#entries(argument.value) : null;
  }

  #entries(value: ValueNode): number | null {
    switch (value.kind) {
      case Kind.INT:
        return Math.max(Number(value.value), 0);
      case Kind.LIST:
        return value.values.length;
      case Kind.OBJECT: {
        const limit = value.fields.find((field) => field.name.value === 'limit');
        return limit ? this.#entries(limit.value) : null;
      }
      case Kind.VARIABLE: {
        const name = value.name.value;
        const byDefault = this.#defaults.get(name);
        if (Object.hasOwn(this.#variables, name)) return entriesOfVariable(this.#variables[name]);
        return byDefault ? this.#entries(byDefault) : null;
      }
      default:
        return null;
    }
  }

  #definition(name: string, parent: GraphQLNamedType | null): GraphQLField<unknown, unknown> | null {
    if (parent === this.#schema.getQueryType()) {
      const introspection = [SchemaMetaFieldDef, TypeMetaFieldDef].find((field) => field.name === name);
      if (introspection) return introspection;
    }
    return isObjectType(parent) || isInterfaceType(parent) ? (parent.getFields()[name] ?? null) : null;
  }

  #type(name: string | undefined, parent: GraphQLNamedType | null): GraphQLNamedType | null {
    return name === undefined ? parent : (this.#schema.getType(name) ?? null);
  }
}

function entriesOfVariable(value: unknown): number | null {
  if (typeof value === 'number') return Math.max(value, 0);
  if (Array.isArray(value)) return value.length;
  return typeof value === 'object' && value !== null && 'limit' in value && typeof value.limit === 'number'
    ? Math.max(value.limit, 0)
    : null;
}
