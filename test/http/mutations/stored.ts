import { getNamedType, isInputObjectType, isObjectType } from 'graphql';
import { schema } from '../../graphql/client.ts';
import type { Data } from './answers.ts';
import { type Case, valuesOf } from './cases.ts';
import { differences, nodeType, pairOf, type Sent } from './read-back.ts';

export type Ask = (query: string, variables: object) => Promise<Data>;

/** Of a batch, as many entries are read again. */
const compared = 3;

/** What a success stored, read again by questions: what differs from what was sent. */
export async function storedDifferences(sentCase: Case, answer: Data, ask: Ask): Promise<string[]> {
  const { mutation } = sentCase;
  const args: Data = valuesOf(sentCase);
  const given = Array.isArray(answer) ? answer : [answer];
  const found: string[] = [];
  for (const [i, entry] of given.slice(0, compared).entries()) {
    const success = schema.getType(entry?.__typename ?? '');
    if (!isObjectType(success) || !success.name.endsWith('Success')) continue;
    const [argument] = mutation.args;
    const input = argument && getNamedType(argument.type);
    const isWhole = isInputObjectType(input) && mutation.args.length === 1;
    const fields: Sent = isWhole ? Object.values(input.getFields()) : mutation.args;
    const whole: Data = isWhole ? args[argument?.name ?? ''] : args;
    const sent: Data = Array.isArray(whole) ? whole[i] : whole;
    if (isReplay(sent, entry)) continue;
    for (const { id, type } of objectsOf(success.name, entry, sent)) {
      const compare = fields.filter(({ name }) => isKept(name, type, sent));
      const pair = pairOf(compare, type);
      if (!pair) continue;
      const { node } = await ask(
        `query($id: ID!) { node(id: $id) { ... on ${type.name} { ${pair.selection} } } }`,
        { id },
      );
      found.push(...differences(compare, type, sent, node));
    }
  }
  return found;
}

/** Nothing was stored of it, or of others too. */
const isReplay = (sent: Data, entry: Data): boolean =>
  entry.replayed === true ||
  sent?.debounce != null ||
  sent?.firstSequence != null ||
  (entry.lastSequence ?? 0) > 200 ||
  (entry.outcome !== undefined && entry.outcome !== 'APPLIED');

/** The objects that a success shows; where it shows none, the attempt that was spoken of. */
function objectsOf(success: string, entry: Data, sent: Data) {
  const type = schema.getType(success);
  const fields = isObjectType(type) ? Object.values(type.getFields()) : [];
  const shown = fields.flatMap((field) => {
    const node = nodeType(field.type);
    const id = entry[field.name]?.id;
    return node && typeof id === 'string' ? [{ id, type: node }] : [];
  });
  const attempt = schema.getType('Attempt');
  const attemptId = sent?.lease?.attemptId;
  return shown.length > 0 || !isObjectType(attempt) || typeof attemptId !== 'string'
    ? shown
    : [{ id: attemptId, type: attempt }];
}

/** A result keeps its output when the work was done, and its error when it failed: of the attempt, if not of a task that goes on. */
function isKept(field: string, type: { name: string }, sent: Data): boolean {
  if (field === 'id') return false;
  if (field === 'error') return sent.status === 'FAILED' && type.name === 'Attempt';
  const isResult = sent.leaseToken !== undefined;
  return !isResult || sent.status === 'COMPLETED' || type.name === 'Attempt';
}
