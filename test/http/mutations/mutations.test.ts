import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { count, tier } from '../../support/tier.ts';
import { wrongTexts } from './accepted.ts';
import { type Data, faultOf, isDone, isRefused, type Received } from './answers.ts';
import { ArbitraryInputs } from './arbitrary-inputs.ts';
import { arbitraryCase, type Case, valuesOf } from './cases.ts';
import { KnownThings } from './known-things.ts';
import { storedDifferences } from './stored.ts';
import { World } from './world.ts';
import { Writes } from './writes.ts';

/** After so many cases the world is set right again: they pause, cancel, disable and delete what the next would use. */
const casesOfWorld = 20;
const hour = 3_600_000;

const known = new KnownThings();
const failures: object[] = [];
let server: TestServer;
let world: World;
let writes: Writes;

beforeAll(async () => {
  server = await startTestServer({ log: { error: (fields) => void failures.push(fields) } });
  world = await World.prepare(server.plane, known);
  writes = await Writes.watch(server.plane.database.db);
});
afterAll(() => server.stop());

test(
  'whatever a mutation is sent, it is refused and changes nothing, or is stored as it was sent, and the server lives on',
  async () => {
    let cases = 0;
    const property = fc.asyncProperty(arbitraryCase(new ArbitraryInputs(known)), async (sent) => {
      if (cases++ % casesOfWorld === 0) await world.setRight();
      await check(sent);
    });
    // The world is another one for each case: what failed is not looked for again in a smaller form.
    await fc.assert(property, { numRuns: count({ test: 400, soak: 100_000 }), endOnFailure: true });
    await world.end();
    expect(await ask('{ viewer { name } }', {})).toMatchObject({ viewer: {} });
  },
  tier === 'soak' ? 4 * hour : 180_000,
);

async function check(sent: Case): Promise<void> {
  const { name } = sent.mutation;
  await writes.sinceLast();
  const answer = await send(sent.body);
  const written = await writes.sinceLast();
  expect(faultOf(sent.mutation, answer, known)).toBeNull();
  expect(failures).toEqual([]);
  const { data }: Data = JSON.parse(answer.text);
  if (isRefused(data?.[name] ?? null) || sent.args.dryRun === true) expect(written, answer.text).toEqual([]);
  else {
    expect(await storedDifferences(sent, data[name], ask)).toEqual([]);
    if (isDone(data[name])) expect(wrongTexts(sent.mutation.args, valuesOf(sent))).toEqual([]);
  }
  known.learn(data);
}

async function send(body: string): Promise<Received> {
  const response = await fetch(server.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  return { status: response.status, text: await response.text() };
}

/** The data of a question that has to be answered. */
async function ask(query: string, variables: object): Promise<Data> {
  const { text } = await send(JSON.stringify({ query, variables }));
  const { data, errors }: Data = JSON.parse(text);
  expect(errors, query).toBeUndefined();
  return data;
}
