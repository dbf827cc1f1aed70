import type { Scope } from '../domain/credential.ts';

/** On a question, stream or type that needs another scope than READ, or none. guards.ts asks for it. */
export const needs = (scope: Scope | null): { extensions: { scope: Scope | null } } => ({
  extensions: { scope },
});
