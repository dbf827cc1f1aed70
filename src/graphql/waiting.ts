import type { Waiting } from '../read/waiting.ts';
import { builder } from './builder.ts';
import { WaitingReasonEnum } from './enums.ts';

export const WaitingRef = builder.objectRef<Waiting>('Waiting').implement({
  description: 'Why a task does not run.',
  fields: (t) => ({
    reason: t.field({
      type: WaitingReasonEnum,
      description: 'The first that would have to end.',
      resolve: ({ reason }) => reason,
    }),
    detail: t.exposeString('detail', { description: 'The reason in words, with names and numbers.' }),
    since: t.expose('since', {
      type: 'DateTime',
      description: 'When it came to the place where it waits now.',
    }),
    until: t.expose('until', {
      type: 'DateTime',
      nullable: true,
      description: 'When the reason ends by itself, if that is known.',
    }),
  }),
});
