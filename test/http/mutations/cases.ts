import fc, { type Arbitrary } from 'fast-check';
import {
  type GraphQLField,
  type GraphQLOutputType,
  getNamedType,
  isCompositeType,
  isUnionType,
} from 'graphql';
import { everything, schema } from '../../graphql/client.ts';
import { problemTypes } from './answers.ts';
import { type ArbitraryInputs, type Manner, manners } from './arbitrary-inputs.ts';
import { toLiteral } from './literals.ts';
import { toJsonText } from './raw-json.ts';

export type Mutation = GraphQLField<unknown, unknown>;

/** One call of a mutation. */
export interface Case {
  mutation: Mutation;
  args: Record<string, unknown>;
  /** The request, as it is sent. */
  body: string;
}

export const mutations: readonly Mutation[] = Object.values(schema.getMutationType()?.getFields() ?? {});

const answers = new Map(mutations.map(({ name, type }) => [name, selectionOf(type)]));

/** Everything that an answer offers. Fields of problems get names of their own, which those of a success never conflict with. */
function selectionOf(type: GraphQLOutputType): string {
  const named = getNamedType(type);
  if (!isUnionType(named)) return everything(named.name, 1);
  const members = named.getTypes().map((member) => {
    if (!problemTypes.has(member.name)) return `... on ${member.name} ${everything(member.name, 1)}`;
    const leaves = Object.values(member.getFields()).filter(
      (field) => !isCompositeType(getNamedType(field.type)),
    );
    return `... on ${member.name} { ${leaves.map((field) => `${member.name}_${field.name}: ${field.name}`).join(' ')} }`;
  });
  return `{ __typename ${members.join(' ')} }`;
}

/** A call of any mutation with any arguments, by variables or in the document. */
export function arbitraryCase(inputs: ArbitraryInputs): Arbitrary<Case> {
  return fc.oneof(
    ...mutations.flatMap((mutation) => manners.map((manner) => caseOf(inputs, mutation, manner))),
  );
}

/** A call of this mutation. */
export const caseOf = (inputs: ArbitraryInputs, mutation: Mutation, manner: Manner): Arbitrary<Case> =>
  fc
    .tuple(
      inputs.argumentsOf(
        mutation.name,
        mutation.args.map((arg) => ({ ...arg })),
        manner,
      ),
      fc.nat(4),
    )
    .map(([args, form]) => new Call(mutation, args, form === 0));

/** A call with these arguments, by variables. */
export const callOf = (mutation: Mutation, args: Record<string, unknown>): Case =>
  new Call(mutation, args, false);

class Call implements Case {
  readonly mutation: Mutation;
  readonly args: Record<string, unknown>;
  readonly body: string;

  constructor(mutation: Mutation, args: Record<string, unknown>, asLiterals: boolean) {
    this.mutation = mutation;
    this.args = args;
    this.body = (asLiterals && this.#withLiterals()) || this.#withVariables();
  }

  /** What a failure shows. */
  [fc.toStringMethod](): string {
    return this.body.length > 3000 ? `${this.body.slice(0, 3000)} … (${this.body.length})` : this.body;
  }

  #withVariables(): string {
    const { name, args } = this.mutation;
    const declared = args.map((arg) => `$${arg.name}: ${String(arg.type)}`).join(', ');
    const given = args.map((arg) => `${arg.name}: $${arg.name}`).join(', ');
    const query = `mutation(${declared}) { ${name}(${given}) ${answers.get(name)} }`;
    return toJsonText({ query, variables: this.args });
  }

  #withLiterals(): string | null {
    const { name, args } = this.mutation;
    const given = args.flatMap((arg) => {
      const value = this.args[arg.name];
      if (value === undefined) return [];
      const literal = toLiteral(value, arg.type);
      return [literal === null ? null : `${arg.name}: ${literal}`];
    });
    if (given.length === 0 || given.includes(null)) return null;
    return toJsonText({ query: `mutation { ${name}(${given.join(', ')}) ${answers.get(name)} }` });
  }
}

/** The arguments as a server reads them. */
export const valuesOf = ({ args }: Case): ReturnType<typeof JSON.parse> => JSON.parse(toJsonText(args));
