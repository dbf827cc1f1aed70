import { InvalidInputError, isInvalidInput, parsed } from '../domain/problems.ts';
import { addDeadLetterFilter, deadLettersFrom } from '../read/dead-letters.ts';
import type { ActionsContext } from './act.ts';
import { bulk } from './bulk.ts';
import type { Actions } from './types.ts';

export const createPurge = (context: ActionsContext): Pick<Actions, 'purgeDeadLetters'> => ({
  purgeDeadLetters: async (input, actor) => {
    const reason = parsed(() => {
      if (input.reason.trim() === '')
        throw new InvalidInputError('reason', 'reason is blank; say why these dead letters go.');
      return input.reason;
    });
    if (isInvalidInput(reason)) return reason;
    return bulk(context, 'dead_letter.purge', input, actor, {
      from: deadLettersFrom,
      id: 'd.id',
      where: (where) => addDeadLetterFilter(where, input.filter),
      // One that is replayed, or grows, meanwhile is asked again whether it matches.
      lock: 'd',
      change: async (tx, ids) => {
        const { rows } = await tx.query<{ id: string }>({
          text: 'delete from runplane.dead_letters where id = any($1) returning id',
          values: [ids],
        });
        return rows.map(({ id }) => id);
      },
    });
  },
});
