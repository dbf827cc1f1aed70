import { parse, print, separateOperations } from 'graphql';
import { readOperations } from '../../src/cli/graphql-client.ts';

const operations = separateOperations(parse(readOperations('bench.graphql')));

/** The text of one operation alone, so that what is measured does not grow with the others of the file. */
export function operation(name: string): string {
  const document = operations[name];
  if (!document) throw new Error(`schema/operations/bench.graphql has no ${name}`);
  return print(document);
}
