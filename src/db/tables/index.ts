export * from './configuration.ts';
export * from './knowledge.ts';
export * from './operations.ts';
export * from './places.ts';
export * from './results.ts';
export * from './throttling.ts';
export * from './types.ts';
export * from './work.ts';
