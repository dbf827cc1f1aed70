import { getNamedType, isInputObjectType } from 'graphql';
import { fromPublicId } from '../../../src/domain/ids.ts';
import { type Data, isProblem } from './answers.ts';
import { type Case, valuesOf } from './cases.ts';
import type { Sent } from './read-back.ts';

/** What was sent and what was answered to it: of a batch each entry. */
export interface Entry {
  /** The type of what was sent, or the mutation whose arguments it is. */
  owner: string;
  fields: Sent;
  sent: Data;
  answer: Data;
}

export function entriesOf(sentCase: Case, answer: Data): Entry[] {
  const { name, args } = sentCase.mutation;
  const values: Data = valuesOf(sentCase);
  const [argument] = args;
  const input = argument && getNamedType(argument.type);
  const isWhole = isInputObjectType(input) && args.length === 1;
  const owner = isWhole ? input.name : name;
  const fields: Sent = isWhole ? Object.values(input.getFields()) : args;
  const whole: Data[] = [isWhole ? values[argument?.name ?? ''] : values].flat();
  return [answer].flat().map((entry: Data, i) => ({ owner, fields, sent: whole[i], answer: entry }));
}

/** It was done: a success, or a lease that its worker holds. */
export const isAccepted = ({ answer }: Pick<Entry, 'answer'>): boolean =>
  answer !== null && (answer.__typename === 'LeaseStatus' ? answer.state !== 'STALE' : !isProblem(answer));

/** The ids and keys that stand in what was sent and answered, as the database has them. */
export function namesIn(value: Data): string[] {
  if (typeof value === 'string') {
    const [prefix = ''] = value.split('_', 1);
    const id = /^[a-z]+_[0-9a-z]{26}$/.test(value) ? fromPublicId(prefix as 'run', value) : null;
    return id === null ? [value.normalize('NFC')] : [id];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.values<Data>(value).flatMap(namesIn);
}
