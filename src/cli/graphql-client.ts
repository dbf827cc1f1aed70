import { readFileSync } from 'node:fs';

const operations = new URL('../../schema/operations/', import.meta.url);

/** The text of an operations file; name one of its operations when it is sent. */
export const readOperations = (file: string): string => readFileSync(new URL(file, operations), 'utf8');

interface Answer {
  data?: Record<string, unknown> | null;
  errors?: { message: string }[];
}

/** Talks to a Runplane server like every client: JSON over HTTP, subscriptions as event streams. */
export class GraphQLClient {
  readonly #endpoint: string;
  readonly #query: string;

  constructor(url: string, operationsFile: string) {
    this.#endpoint = `${url}/graphql`;
    this.#query = readOperations(operationsFile);
  }

  /** Sends an operation; throws when its answer has errors. The caller knows the shape of what it asked for. */
  async send<Data>(operationName: string, variables: object = {}): Promise<Data> {
    const response = await fetch(this.#endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ query: this.#query, operationName, variables }),
    });
    return dataOf<Data>((await response.json()) as Answer);
  }

  /** Streams a subscription until the signal aborts. */
  async *stream<Data>(operationName: string, variables: object, signal: AbortSignal): AsyncGenerator<Data> {
    const response = await fetch(this.#endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify({ query: this.#query, operationName, variables }),
      signal,
    });
    if (!response.ok || !response.body) throw new Error(`The stream was refused: ${await response.text()}`);
    let rest = '';
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      const blocks = (rest + chunk).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const lines = block.split('\n');
        if (lines.includes('event: complete')) return;
        const data = lines.find((line) => line.startsWith('data: '));
        if (data) yield dataOf<Data>(JSON.parse(data.slice('data: '.length)) as Answer);
      }
    }
  }
}

function dataOf<Data>({ data, errors }: Answer): Data {
  if (errors && errors.length > 0) throw new Error(errors.map((error) => error.message).join('\n'));
  return data as Data;
}
