import { KnowledgeRecordRef } from './refs.ts';
import { ifPayload } from './scopes.ts';

KnowledgeRecordRef.implement({
  description: 'A row that the built-in knowledge pipeline stored.',
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Its table and its number there.' }),
    table: t.exposeString('table', {
      description: 'knowledge_chat_audit, knowledge_chat_pairs or knowledge_events.',
    }),
    at: t.expose('at', { type: 'DateTime', description: 'When it was stored.' }),
    eventId: t.exposeString('eventId', {
      nullable: true,
      description: 'The event_id of a row of knowledge_events; null in the other tables.',
    }),
    data: t.field({
      type: 'JSON',
      nullable: true,
      description: 'Its columns, by their names. Needs PAYLOAD_READ, else null.',
      resolve: ({ data }, _, context) => ifPayload(context, () => data),
    }),
  }),
});
