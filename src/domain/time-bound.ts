import { createContext, Script } from 'node:vm';

/** What ran was ended because it took too long. */
class TookTooLong extends Error {}

const realm = createContext({ run: null as (() => unknown) | null });
const script = new Script('run()');
let inside = false;

/** Runs synchronous work of a user's making (templates, schemas, patterns), ended from outside after a time. */
export function timeBound<T>(milliseconds: number, run: () => T): T {
  // The outer bound holds already.
  if (inside) return run();
  realm.run = run;
  inside = true;
  try {
    return script.runInContext(realm, { timeout: milliseconds }) as T;
  } catch (error) {
    // It comes from the other realm, so that instanceof does not know it.
    if ((error as { code?: unknown } | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT')
      throw new TookTooLong(`it takes longer than ${milliseconds} ms`);
    throw error;
  } finally {
    realm.run = null;
    inside = false;
  }
}
