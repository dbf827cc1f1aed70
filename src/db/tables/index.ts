export * from './configuration.ts';
export * from './knowledge.ts';
export * from './operations.ts';
export * from './results.ts';
export * from './types.ts';
export * from './work.ts';
