export { createKnowledgeHandlers } from './handlers.ts';
export { installKnowledge } from './install.ts';
