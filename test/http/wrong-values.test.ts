import { GraphQLEnumType, GraphQLSchema } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { withAllowedValues } from '../../src/http/allowed-values.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

const secret = 'what-nobody-may-read; Field "x"';
const report = 'mutation($input: ReportResultInput!) { reportResult(input: $input) { __typename } }';
const lease = { attemptId: 'att_01h00000000000000000000000', leaseToken: secret };
const text = JSON.stringify(secret);

test.each([
  [
    'a field that there is not',
    { ...lease, status: 'COMPLETED', nothing: 1 },
    'Variable "$input" got invalid value; Field "nothing" is not defined by type "ReportResultInput".',
  ],
  [
    'a field that is missing',
    { ...lease, output: { secret } },
    'Variable "$input" got invalid value; Field "status" of required type "ResultStatus!" was not provided.',
  ],
  [
    'a field of another type',
    { ...lease, status: 'COMPLETED', confidence: secret },
    'Variable "$input" got invalid value at "input.confidence"; Float cannot represent non numeric value.',
  ],
  [
    'an entry of another type',
    { ...lease, status: 'COMPLETED', usage: [{ model: [secret] }] },
    'Variable "$input" got invalid value at "input.usage[0].model"; String cannot represent a non string value.',
  ],
  [
    'a wrong time',
    { ...lease, status: 'COMPLETED', usage: [{ at: secret }] },
    'Variable "$input" got invalid value at "input.usage[0].at"; A DateTime must be an RFC 3339 time with its offset, such as 2026-01-31T12:00:00.000Z.',
  ],
  [
    'a wrong name of an enum',
    { ...lease, status: secret },
    'Variable "$input" got invalid value at "input.status"; The value does not exist in "ResultStatus" enum; it is one of CANCELLED, COMPLETED, FAILED, RELEASED.',
  ],
  [
    'no name of an enum',
    { ...lease, status: { secret } },
    'Variable "$input" got invalid value at "input.status"; Enum "ResultStatus" cannot represent non-string value; it is one of CANCELLED, COMPLETED, FAILED, RELEASED.',
  ],
])('of variables with %s it is told where and why, and no value', async (_, input, message) => {
  const { errors } = await server.post(report, { input });
  expect(errors).toHaveLength(1);
  expect(errors?.[0]).toMatchObject({ message, extensions: { code: 'BAD_USER_INPUT' } });
});

test.each([
  [
    `{ nothing: 1, attemptId: ${text}, leaseToken: ${text}, status: COMPLETED }`,
    'Field "nothing" is not defined by type',
  ],
  [
    `{ attemptId: "x", leaseToken: [${text}], status: COMPLETED }`,
    'Argument "input" got invalid value at "input.leaseToken"; String cannot represent a non string value.',
  ],
  [`[[{ attemptId: ${text} }]]`, 'Expected value of type "ReportResultInput".'],
  [`${text}`, 'Expected value of type "ReportResultInput!".'],
  [
    `{ attemptId: "x", leaseToken: "x", status: COMPLETED, usage: [{ cost: ${text} }] }`,
    'Argument "input" got invalid value at "input.usage[0].cost"; A Decimal must be a string such as',
  ],
  [
    `{ attemptId: "x", leaseToken: "x", status: COMPLETED, output: { read: [1, NaN] } }`,
    'Argument "input" got invalid value at "input.output"; JSON has no names: a text is written in quotes.',
  ],
  [
    `{ attemptId: "x", leaseToken: "x", status: what_nobody_may_read }`,
    'Argument "input" got invalid value at "input.status"; The value does not exist in "ResultStatus" enum; it is one of CANCELLED, COMPLETED, FAILED, RELEASED.',
  ],
  [
    `{ attemptId: "x", leaseToken: "x", status: ${text} }`,
    'Argument "input" got invalid value at "input.status"; Enum "ResultStatus" cannot represent non-enum value; it is one of CANCELLED',
  ],
])('of a wrong value in the document likewise: %s', async (input, message) => {
  const { errors } = await server.post(`mutation { reportResult(input: ${input}) { __typename } }`);
  expect(errors?.map((error) => error.message).join('\n')).toContain(message);
  expect(JSON.stringify(errors)).not.toMatch(/nobody.may.read/);
  for (const { locations } of errors ?? []) expect(locations).toHaveLength(1);
});

test.each([
  [
    '{ runs(first: "x") { nodes { id } } }',
    'Argument "first" got invalid value; Int cannot represent non-integer value.',
    15,
  ],
  [
    'query($at: DateTime = "x") { runs(filter: { createdAfter: $at }) { nodes { id } } }',
    'Default of "$at" got invalid value; A DateTime must be an RFC 3339 time',
    23,
  ],
  ['{ runs @include(if: 1) { nodes { id } } }', 'Argument "if" got invalid value; Boolean cannot', 21],
  ['{ tasks(filter: { ids: ["x", 1.5] }) { nodes { id } } }', 'at "filter.ids[1]"; ID cannot represent', 30],
])('where a literal stands is told: %s', async (query, message, column) => {
  const { errors } = await server.post(query);
  expect(errors).toMatchObject([
    { message: expect.stringContaining(message), locations: [{ line: 1, column }] },
  ]);
});

test('of an enum with many names the first are told, and how many there are besides', () => {
  const names = Array.from({ length: 14 }, (_, i) => [`N${i}`, {}] as const);
  const schema = new GraphQLSchema({
    types: [new GraphQLEnumType({ name: 'Many', values: Object.fromEntries(names) })],
  });
  expect(withAllowedValues('The value does not exist in "Many" enum.', schema)).toBe(
    'The value does not exist in "Many" enum; it is one of N0, N1, N2, N3, N4, N5, N6, N7, N8, N9, N10, N11 and 2 more.',
  );
});

test.each([
  [`{ run(id: ${text} ${text}) { id } }`, 'Syntax Error: Expected Name, found String.'],
  [`{ run(id ${text}) { id } }`, 'Syntax Error: Expected ":", found String.'],
  [`{ run ${text} }`, 'Syntax Error: Expected Name, found String.'],
  [`{ run(id: [${text}} }`, 'Syntax Error: Unexpected "}".'],
  [`query($id: ID = $x ${text}) { run }`, 'Syntax Error: Unexpected variable "$x" in constant value.'],
  ['{ run(id: "" """nobody-may-read""") { id } }', 'Syntax Error: Expected Name, found BlockString.'],
  ['{ run(id: "x" 12345) { id } }', 'Syntax Error: Expected Name, found Int.'],
  ['{ run(id: "x" 123.45) { id } }', 'Syntax Error: Expected Name, found Float.'],
  ['{ run(id: "\\q-nobody") { id } }', 'Syntax Error: Invalid character escape sequence.'],
  ['{ run(id: "\\unobody") { id } }', 'Syntax Error: Invalid Unicode escape sequence.'],
])('what is no GraphQL is not quoted: %s', async (query, message) => {
  const { errors } = await server.post(query);
  expect(errors).toMatchObject([{ message, extensions: { code: 'GRAPHQL_PARSE_FAILED' } }]);
  expect(JSON.stringify(errors)).not.toMatch(/nob|12345|123\.45/);
});

test('names of fields, arguments and types are quoted', async () => {
  const { errors } = await server.post('{ run(id: "x", nothing: 1) { stats } }');
  expect(errors?.map(({ message }) => message).sort()).toEqual([
    'Cannot query field "stats" on type "Run". Did you mean "status", "steps", or "tasks"?',
    'Unknown argument "nothing" on field "Query.run".',
  ]);
});

test('of a literal that a variable turns out to be missing in, nothing is told but the argument', async () => {
  const query = `mutation($job: String = "one") { launchRun(input: { job: $job, correlationId: ${text} }) { __typename } }`;
  const answer = await server.post(query, { job: null });
  expect(answer).toEqual({
    data: { launchRun: null },
    errors: [
      {
        message: 'Argument "input" has invalid value.',
        locations: [expect.any(Object)],
        path: ['launchRun'],
        extensions: { code: 'BAD_USER_INPUT' },
      },
    ],
  });
  const skip = 'query($no: Boolean = true) { __typename @skip(if: $no) }';
  expect(await server.post(skip, { no: null })).toMatchObject({
    errors: [{ extensions: { code: 'BAD_USER_INPUT' } }],
  });
});
