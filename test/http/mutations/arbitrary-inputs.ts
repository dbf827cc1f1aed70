import fc, { type Arbitrary } from 'fast-check';
import {
  type GraphQLInputField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isRequiredInputField,
} from 'graphql';
import {
  hostileDecimals,
  hostileIds,
  hostileJson,
  hostileNumbers,
  hostileTexts,
  hostileTimes,
  largeJson,
} from './hostile-values.ts';
import { type Kind, KnownThings } from './known-things.ts';

/** The same for arguments of a field and for fields of an input. */
type Field = Pick<GraphQLInputField, 'name' | 'type' | 'defaultValue'>;

export interface Manner {
  /** Of a thousand values, how many are hostile. */
  hostile: number;
  /** The same of values that are JSON. */
  hostileJson: number;
  /** Of a thousand fields that may be left out, how many are given. */
  given: number;
}

interface Place extends Manner {
  /** How many fields that may be left out stand within each other. */
  depth: number;
}

export const rightly: Manner = { hostile: 0, hostileJson: 0, given: 250 };
const wrongInJson: Manner = { hostile: 0, hostileJson: 500, given: 300 };

/** With nothing hostile much is accepted; with much of it, little comes further than the schema. */
export const manners: readonly Manner[] = [
  rightly,
  wrongInJson,
  { hostile: 60, hostileJson: 60, given: 350 },
  { hostile: 350, hostileJson: 350, given: 400 },
];

/** Arbitrary arguments, made of nothing but the schema's types and what is known to be there. */
export class ArbitraryInputs {
  readonly #known: KnownThings;

  constructor(known: KnownThings) {
    this.#known = known;
  }

  argumentsOf(
    mutation: string,
    fields: readonly Field[],
    manner: Manner,
  ): Arbitrary<Record<string, unknown>> {
    return this.#object(mutation, fields, { ...manner, depth: 3 });
  }

  #object(owner: string, fields: readonly Field[], manner: Place): Arbitrary<Record<string, unknown>> {
    const model = Object.fromEntries(fields.map((field) => [field.name, this.#field(owner, field, manner)]));
    const record = fc.record(model).map((values) => {
      for (const name in values) if (values[name] === undefined) delete values[name];
      return values;
    });
    const isLease = ['attemptId', 'leaseToken'].every((name) => name in model);
    if (!isLease) return record;
    const lease = fc.option(
      fc.oneof({ weight: 4, arbitrary: fc.nat(9) }, { weight: 1, arbitrary: fc.nat() }),
      { freq: 9 },
    );
    return fc
      .tuple(record, lease)
      .map(([values, n]) => ({ ...values, ...(n === null ? {} : this.#known.lease(n)) }));
  }

  #field(owner: string, field: Field, manner: Place): Arbitrary<unknown> {
    const required = isRequiredInputField(field as GraphQLInputField);
    if (!required && manner.depth <= 0) return fc.constant(undefined);
    const deeper = { ...manner, depth: manner.depth - (required ? 0 : 1) };
    const value = this.#value(owner, field.name, field.type, deeper);
    // Waiting for work is not what is tried here.
    const quick =
      field.name === 'waitSeconds'
        ? value.map((v) => (typeof v === 'number' && v > 0 && v <= 25 ? 0.01 : v))
        : value;
    const absent = required ? Math.round(manner.hostile / 20) : 1000 - manner.given;
    return fc.oneof(
      { weight: 1000 - absent, arbitrary: quick },
      { weight: absent, arbitrary: fc.constant(undefined) },
      { weight: required ? Math.round(manner.hostile / 20) : 20, arbitrary: fc.constant(null) },
    );
  }

  #value(owner: string, name: string, type: GraphQLInputType, manner: Place): Arbitrary<unknown> {
    if (isNonNullType(type)) return this.#value(owner, name, type.ofType, manner);
    if (isListType(type)) return this.#list(this.#value(owner, name, type.ofType, manner), manner);
    if (isInputObjectType(type)) return this.#input(type, manner);
    const kind = KnownThings.kindOf(owner, name);
    const [good, hostile] = isEnumType(type)
      ? [
          fc.constantFrom(...type.getValues().map((value) => value.name)),
          fc.constantFrom<unknown>('NONE', '', 5, null, '\0'),
        ]
      : this.#scalar(type.name, name, kind);
    return mix(good, hostile, type.name === 'JSON' ? manner.hostileJson : manner.hostile);
  }

  #list(entry: Arbitrary<unknown>, manner: Place): Arbitrary<unknown> {
    const many = fc
      .tuple(entry, fc.constantFrom(5, 33, 101, 201, 501, 1000, 1001))
      .map(([value, times]): unknown => Array.from({ length: times }, () => value));
    return fc.oneof(
      { weight: 1000, arbitrary: fc.array(entry, { minLength: 1, maxLength: 3 }) },
      { weight: 30 + manner.hostile, arbitrary: fc.constant([]) },
      { weight: Math.round(manner.hostile / 30), arbitrary: many },
      // A single value stands for a list of one.
      { weight: Math.round(manner.hostile / 10), arbitrary: entry },
    );
  }

  #input(type: GraphQLInputObjectType, manner: Place): Arbitrary<unknown> {
    const fields = Object.values(type.getFields());
    const good: Arbitrary<Record<string, unknown>> = type.isOneOf
      ? fc
          .constantFrom(...fields)
          .chain((field) =>
            this.#value(type.name, field.name, field.type, manner).map((value) => ({ [field.name]: value })),
          )
      : this.#object(type.name, fields, manner);
    const wrong = fc.oneof(
      good.map((value) => ({ ...value, noSuchField: 1 })),
      good.map((value) => [value, value]),
      fc.constantFrom<unknown>({}, 'x', 5, [], null),
      this.#object(type.name, fields, { ...manner, given: 1000 }),
    );
    return fc.oneof(
      { weight: 1000, arbitrary: good },
      { weight: Math.round(manner.hostile / 8), arbitrary: wrong },
    );
  }

  /** Well-formed values of a scalar, and hostile ones. */
  #scalar(scalar: string, field: string, kind: Kind | null): [Arbitrary<unknown>, Arbitrary<unknown>] {
    switch (scalar) {
      case 'ID':
        return [this.#id(kind), fc.constantFrom(...hostileIds)];
      case 'String':
        return [this.#text(kind), fc.oneof(fc.constantFrom(...hostileTexts), fc.string({ unit: 'binary' }))];
      case 'Int':
      case 'SafeInt':
        return [fc.constantFrom(0, 1, 2, 5, 10, 60, 100), fc.constantFrom(...hostileNumbers)];
      case 'Float':
        return [fc.constantFrom(0, 0.001, 0.25, 1), fc.constantFrom(...hostileNumbers)];
      case 'Boolean':
        return [fc.boolean(), fc.constantFrom<unknown>('true', 0, 1, null, [])];
      case 'DateTime':
        return [
          fc
            .date({ min: new Date('2020-01-01'), max: new Date('2040-01-01'), noInvalidDate: true })
            .map((date) => date.toISOString()),
          fc.constantFrom(...hostileTimes),
        ];
      case 'Decimal':
        return [fc.constantFrom('0', '0.5', '12', '0.032786'), fc.constantFrom(...hostileDecimals)];
      case 'Cursor':
        return [fc.constant('abc'), fc.constantFrom<unknown>('', 'a b', '\0', 'x'.repeat(3000), 5)];
      case 'JSON':
        return [arbitraryJson(field), hostileJsonValue];
      default:
        throw new Error(`${field} is a ${scalar}, of which no values are known; add some.`);
    }
  }

  #id(kind: Kind | null): Arbitrary<unknown> {
    const known = fc.oneof(fc.nat(30), fc.nat()).map((n) => this.#known.id(kind, n));
    return fc.oneof(
      { weight: 9, arbitrary: known },
      { weight: 1, arbitrary: fc.nat().map((n) => this.#known.id(null, n)) },
    );
  }

  #text(kind: Kind | null): Arbitrary<unknown> {
    const free = fc.oneof(
      fc.constantFrom('a word', 'k', 'e\u0301', '漢字', '👍', 'x-1.y_2'),
      fc.string({ minLength: 1, maxLength: 12, unit: 'grapheme' }),
    );
    if (kind === null) return free;
    const named = fc.nat().map((n) => this.#known.name(kind, n) ?? 'a word');
    return fc.oneof({ weight: 9, arbitrary: named }, { weight: 1, arbitrary: free });
  }
}

const mix = (good: Arbitrary<unknown>, hostile: Arbitrary<unknown>, ofThousand: number): Arbitrary<unknown> =>
  fc.oneof({ weight: 1000 - ofThousand, arbitrary: good }, { weight: ofThousand, arbitrary: hostile });

const storable = fc.string({ maxLength: 20, unit: 'grapheme' });

/** Mostly objects, as most of what is JSON has to be. */
function arbitraryJson(field: string): Arbitrary<unknown> {
  const any = fc.jsonValue({ maxDepth: 3, stringUnit: 'grapheme' });
  const object = fc.dictionary(storable, any, { maxKeys: 4, noNullPrototype: true });
  const plain = fc.constantFrom<unknown>(
    {},
    { text: 'e\u0301' },
    { type: 'object' },
    { id: 'x', tenant: 'y' },
  );
  if (field === 'labels') return fc.dictionary(storable, storable, { maxKeys: 3, noNullPrototype: true });
  return field.startsWith('config')
    ? fc.oneof({ weight: 3, arbitrary: plain }, { weight: 1, arbitrary: object })
    : fc.oneof(
        { weight: 3, arbitrary: plain },
        { weight: 4, arbitrary: object },
        { weight: 1, arbitrary: any },
      );
}

const hostileJsonValue: Arbitrary<unknown> = fc.oneof(
  { weight: 60, arbitrary: fc.constantFrom(...hostileJson) },
  { weight: 1, arbitrary: fc.constantFrom(...largeJson).map((make) => make()) },
  { weight: 10, arbitrary: fc.jsonValue({ stringUnit: 'binary' }) },
);
