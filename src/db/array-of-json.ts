import type { Json } from '../domain/json.ts';

/**
 * An array of JSON as Postgres reads it in one parameter. The driver would escape each quote by itself, which takes seconds
 * and half a gigabyte for 8 MB that are full of them. A JSON text has no control characters: the engine escapes it alike.
 */
export const arrayOfJson = (values: readonly Json[]): string =>
  `{${values.map((value) => JSON.stringify(JSON.stringify(value))).join(',')}}`;
