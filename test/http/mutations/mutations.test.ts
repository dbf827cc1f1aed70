import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { count, tier } from '../../support/tier.ts';
import { wronglyAccepted } from './accepted.ts';
import { type Data, faultOf, isRefused, type Received } from './answers.ts';
import { ArbitraryInputs, rightly } from './arbitrary-inputs.ts';
import { arbitraryCase, type Case, callOf, caseOf, mutations } from './cases.ts';
import { entriesOf, isAccepted, namesIn } from './entries.ts';
import { type JsonPlace, jsonPlaces, tooManyBytes, withJson, wrongJson } from './json-places.ts';
import { KnownThings } from './known-things.ts';
import { storedDifferences } from './stored.ts';
import { World } from './world.ts';
import { strayWrites, Writes } from './writes.ts';

/** After so many cases the world is set right again: they pause, cancel, disable and delete what the next would use. */
const casesOfWorld = 20;
const hour = 3_600_000;
/** So many right calls may miss what they need: work in a certain state. */
const most = 200;
let cases = 0;
let lastAnswer = '';

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

/** Cases one after the other, in a world where they can be done. */
const checkInWorld = async (sent: Case): Promise<boolean> => {
  if (cases++ % casesOfWorld === 0) await world.setRight();
  return check(sent);
};

test.each(mutations)('what is right is accepted and done: $name', async (mutation) => {
  const right = caseOf(new ArbitraryInputs(known), mutation, rightly);
  for (let tries = 0; tries < most; tries += casesOfWorld) {
    for (const sent of fc.sample(right, { numRuns: casesOfWorld, unbiased: true }))
      if (await checkInWorld(sent)) return;
  }
  throw new Error(`None of ${most} calls was accepted.`);
});

const places = mutations.flatMap((mutation) =>
  jsonPlaces(mutation).map((place) => ({ name: `${mutation.name}(${place.name})`, mutation, place })),
);

/** On every change each input once, whichever mutation takes it. */
const isTried = ({ place }: { place: JsonPlace }, i: number): boolean =>
  tier === 'soak' || places.findIndex((other) => other.place.input === place.input) === i;

test.each(places.filter(isTried))(
  'JSON that may not be stored is refused: $name',
  async ({ mutation, place }) => {
    const right = caseOf(new ArbitraryInputs(known), mutation, { ...rightly, given: 500 });
    const bytes = ['too many bytes', tooManyBytes, /\d bytes/] as const;
    // No body takes more than 1 MiB of it.
    const isSmall = place.maxBytes < limits.bodyBytes;
    for (const [what, make, refusal] of isSmall ? [...wrongJson, bytes] : wrongJson) {
      const isRefusedForIt = async ({ args }: Case): Promise<boolean> => {
        const wrong = withJson(args, place, make(place));
        if (!wrong) return false;
        await check(callOf(mutation, wrong));
        return refusal.test(lastAnswer);
      };
      // What else is wrong with a call may be told instead.
      let refused = false;
      for (let tries = 0; tries < most && !refused; tries += casesOfWorld)
        for (const sent of fc.sample(right, { numRuns: casesOfWorld, unbiased: true }))
          refused ||= await isRefusedForIt(sent);
      expect(refused, what).toBe(true);
    }
  },
);

test(
  'whatever a mutation is sent, it is refused and changes nothing, or is stored as it was sent, and the server lives on',
  async () => {
    const property = fc.asyncProperty(arbitraryCase(new ArbitraryInputs(known)), async (sent) => {
      await checkInWorld(sent);
    });
    // The world is another one for each case: what failed is not looked for again in a smaller form.
    await fc.assert(property, { numRuns: count({ test: 400, soak: 100_000 }), endOnFailure: true });
    await world.end();
    expect(await ask('{ viewer { name } }', {})).toMatchObject({ viewer: {} });
  },
  tier === 'soak' ? 4 * hour : 180_000,
);

/** Whether it was accepted, and did something. */
async function check(sent: Case): Promise<boolean> {
  const { name } = sent.mutation;
  await writes.sinceLast();
  const answer = await send(sent.body);
  lastAnswer = answer.text;
  const written = await writes.sinceLast();
  expect(faultOf(sent.mutation, answer, known)).toBeNull();
  expect(failures).toEqual([]);
  const { data }: Data = JSON.parse(answer.text);
  known.learn(data);
  if (isRefused(data?.[name] ?? null) || sent.args.dryRun === true) {
    expect(written, answer.text).toEqual([]);
    return false;
  }
  const entries = entriesOf(sent, data[name]);
  const accepted = entries.filter(isAccepted);
  for (const entry of accepted) expect(wronglyAccepted(entry.owner, entry.fields, entry.sent)).toEqual([]);
  // Of leases that are over, usage is booked all the same: they are not refused.
  if (entries.some((entry) => isRefused(entry.answer)))
    expect(strayWrites(written, namesIn(accepted)), answer.text).toEqual([]);
  expect(await storedDifferences(entries, ask)).toEqual([]);
  return accepted.length > 0 && written.length > 0;
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
