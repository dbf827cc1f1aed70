/** An operation of a pipeline that is kept as a dataset of its own: what it is called, and where its events come in. */
export interface Operation {
  /** Stored as event_type; the check on knowledge_events lists the same names. */
  type: string;
  topic: string;
  description: string;
  /** Of the operation whose dataset it is made from, under the same correlation id. Their messages come in any order. */
  after?: string;
}

/** One entry here makes an operation's job, route and assets; docs/knowledge.md has the other two steps. */
export const operations: readonly Operation[] = [
  {
    type: 'embedding',
    topic: 'pipeline.knowledge.embedding',
    description: 'Keeps what was turned into vectors.',
  },
  {
    type: 'retrieve',
    topic: 'pipeline.knowledge.retrieve',
    description: 'Keeps what was asked for and what was found.',
    after: 'embedding',
  },
  {
    type: 'compose',
    topic: 'pipeline.knowledge.compose',
    description: 'Keeps how found passages were put together for a model.',
    after: 'retrieve',
  },
];

export const chatTopic = 'pipeline.knowledge.chat.persist';
