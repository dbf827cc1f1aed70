import type { Database } from '../db/pool.ts';
import { createKnowledgeHandlers } from './handlers.ts';
import { installKnowledge as install } from './install.ts';

export { createKnowledgeHandlers };

// TEMPORARY, until src/app.ts calls createKnowledgeHandlers.
let db: Database;
export const knowledgeHandlers = createKnowledgeHandlers(() => db);
export function installKnowledge(services: Parameters<typeof install>[0] & { db?: Database }): Promise<void> {
  if (services.db) db = services.db;
  return install(services);
}
