import { ConfigurationError, readConfig } from '../../src/config.ts';

/** What is wrong with these settings, as sentences; empty when nothing is. */
export function faultsOf(env: Record<string, string>): readonly string[] {
  try {
    readConfig(env);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.faults;
    throw error;
  }
  return [];
}
