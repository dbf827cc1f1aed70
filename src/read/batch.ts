import type { Page, PageArgs } from './page.ts';

export type Load<Value> = (key: string) => Promise<Value | null>;

/**
 * Answers single questions together: all that are asked in one turn of the event loop become one statement. Nothing is
 * remembered beyond it, so an answer is never older than its question.
 */
export function batched<Value>(loadAll: (keys: string[]) => Promise<Map<string, Value>>): Load<Value> {
  let open: { keys: Set<string>; answers: Promise<Map<string, Value>> } | null = null;
  const start = () => {
    const keys = new Set<string>();
    const turn = new Promise<void>((resolve) => setImmediate(resolve));
    const answers = turn.then(() => {
      open = null;
      return loadAll([...keys]);
    });
    return { keys, answers };
  };
  return async (key) => {
    open ??= start();
    open.keys.add(key);
    return (await open.answers).get(key) ?? null;
  };
}

export type LoadPage<Row> = (parent: string, args: PageArgs) => Promise<Page<Row>>;

/** The same page of many parents is one statement; a cursor belongs to one parent, so that is a statement of its own. */
export function batchedPages<Row>(
  loadAll: (parents: string[], args: PageArgs) => Promise<Map<string, Page<Row>>>,
): LoadPage<Row> {
  const byArgs = new Map<string, Load<Page<Row>>>();
  return async (parent, { first, after, last, before }) => {
    const args = { first, after, last, before };
    const ofOneParent = after != null || before != null;
    const key = JSON.stringify([first, last]);
    const load = ofOneParent ? undefined : byArgs.get(key);
    const loading = load ?? batched((parents: string[]) => loadAll(parents, args));
    if (!ofOneParent) byArgs.set(key, loading);
    const page = await loading(parent);
    if (!page) throw new Error(`No page was read for ${parent}.`);
    return page;
  };
}
