import { afterAll, beforeAll, expect, test } from 'vitest';
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
    'String cannot represent a non string value.',
  ],
  [`[[{ attemptId: ${text} }]]`, 'Expected value of type "ReportResultInput".'],
  [`${text}`, 'Expected value of type "ReportResultInput!".'],
  [
    `{ attemptId: "x", leaseToken: "x", status: COMPLETED, usage: [{ cost: ${text} }] }`,
    'A Decimal must be a string such as',
  ],
  [
    `{ attemptId: "x", leaseToken: "x", status: COMPLETED, output: { read: [1, NaN] } }`,
    'JSON has no names: a text is written in quotes.',
  ],
])('of a wrong value in the document likewise: %s', async (input, message) => {
  const { errors } = await server.post(`mutation { reportResult(input: ${input}) { __typename } }`);
  expect(errors?.map((error) => error.message).join('\n')).toContain(message);
  expect(JSON.stringify(errors)).not.toContain('nobody-may-read');
});
