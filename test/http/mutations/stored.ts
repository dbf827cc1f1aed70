import { isObjectType } from 'graphql';
import { schema } from '../../graphql/client.ts';
import type { Data } from './answers.ts';
import type { Entry } from './entries.ts';
import { differences, nodeType, pairOf } from './read-back.ts';

export type Ask = (query: string, variables: object) => Promise<Data>;

/** Of a batch, about as many entries are read again, the first and the last among them. */
const compared = 10;

const spread = <T>(entries: readonly T[]): T[] => {
  const step = Math.max(1, Math.ceil((entries.length - 1) / (compared - 1)));
  return entries.filter((_, i) => i % step === 0 || i === entries.length - 1);
};

/** What a success stored, read again by questions: what differs from what was sent. */
export async function storedDifferences(entries: readonly Entry[], ask: Ask): Promise<string[]> {
  const found: string[] = [];
  for (const { fields, sent, answer: entry } of spread(entries)) {
    const success = schema.getType(entry?.__typename ?? '');
    if (!isObjectType(success) || !success.name.endsWith('Success')) continue;
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
