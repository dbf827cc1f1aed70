/** An operation of a pipeline that is kept as a dataset of its own: what it is called, and where its events come in. */
export interface Operation {
  /** Stored as event_type; the check on knowledge_events lists the same names. */
  type: string;
  topic: string;
  description: string;
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
  },
  {
    type: 'compose',
    topic: 'pipeline.knowledge.compose',
    description: 'Keeps how found passages were put together for a model.',
  },
];

export const chatTopic = 'pipeline.knowledge.chat.persist';
