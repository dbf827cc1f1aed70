import type { Json } from '../../domain/json.ts';
import type { ObjectChange } from '../../operator/manifest/types.ts';
import type { Actor } from '../../operator/types.ts';

const signs: Readonly<Record<ObjectChange['action'], string>> = {
  create: '+',
  update: '~',
  unchanged: '=',
  disable: '-',
  delete: '-',
};
const shownCharacters = 100;

/** A line for an object, and one for each field of it that changes. */
export function describeChange({ action, noun, name, versions, fields, state }: ObjectChange): string {
  const { before, after } = versions;
  const notes = [
    ...(action === 'update' || action === 'disable' ? [`version ${before} -> ${after}`] : []),
    ...(state !== null && action !== 'disable' ? [state] : []),
  ];
  const line = `${signs[action]} ${action.padEnd(9)} ${noun.padEnd(8)} ${name}`;
  return [
    notes.length > 0 ? `${line} (${notes.join(', ')})` : line,
    ...fields.map((field) => `      ${field.path}: ${show(field.before)} -> ${show(field.after)}`),
    '',
  ].join('\n');
}

function show(value: Json | undefined): string {
  if (value === undefined) return 'nothing';
  const text = JSON.stringify(value);
  return text.length > shownCharacters ? `${text.slice(0, shownCharacters)}…` : text;
}

const past: readonly [ObjectChange['action'], string][] = [
  ['create', 'created'],
  ['update', 'updated'],
  ['disable', 'disabled'],
  ['delete', 'deleted'],
  ['unchanged', 'unchanged'],
];

export function summarize(
  changes: readonly ObjectChange[],
  { dryRun, actor }: { dryRun: boolean; actor: Actor },
): string {
  const counts = past
    .map(([action, word]) => [changes.filter((change) => change.action === action).length, word] as const)
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${count} ${word}`);
  const told = counts.length > 0 ? counts.join(', ') : 'nothing to do';
  if (dryRun) return `${told}, if it were applied: this was a dry run.\n`;
  const changed = changes.some(({ action }) => action !== 'unchanged');
  return changed ? `${told}, by ${actor.name} as request ${actor.requestId}.\n` : `${told}.\n`;
}
