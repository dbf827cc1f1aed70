import { readFile } from 'node:fs/promises';
import { parse, print, separateOperations } from 'graphql';
import { documentHash } from '../http/trusted-documents.ts';

/**
 * Prints the list of trusted documents for the files it is given: each file as it is, which a client may send with an
 * operationName, and each of its operations alone with the fragments that it uses.
 */
const manifest = new Map<string, string>();
for (const path of process.argv.slice(2)) {
  const text = await readFile(path, 'utf8');
  const operations = Object.values(separateOperations(parse(text))).map((document) => print(document));
  for (const document of [text, ...operations]) manifest.set(documentHash(document), document);
}
console.log(JSON.stringify(Object.fromEntries(manifest), null, 2));
