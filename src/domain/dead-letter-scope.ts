import { isJsonObject, type Json } from './json.ts';

export interface DeadLetterScope {
  scope: 'knowledge_base' | 'knowledge' | 'tenant' | 'unknown';
  scopeId: string | null;
}

const scopeKeys: readonly { scope: DeadLetterScope['scope']; keys: readonly string[] }[] = [
  { scope: 'knowledge_base', keys: ['knowledge_base_id', 'kb_id', 'source_kb_id'] },
  { scope: 'knowledge', keys: ['knowledge_id'] },
  { scope: 'tenant', keys: ['tenant_id'] },
];

/** What a failure concerns: from the task's labels, else from the top-level keys of its input. */
export function deadLetterScope(labels: Readonly<Record<string, string>>, input: Json): DeadLetterScope {
  for (const source of [labels, isJsonObject(input) ? input : {}]) {
    for (const { scope, keys } of scopeKeys) {
      for (const key of keys) {
        const value = source[key];
        if (typeof value === 'string' && value !== '') return { scope, scopeId: value.normalize('NFC') };
        if (typeof value === 'number') return { scope, scopeId: String(value) };
      }
    }
  }
  return { scope: 'unknown', scopeId: null };
}
