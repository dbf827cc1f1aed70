/** An operation of a single connection. */
export const ask = (id: string, query = '{ viewer { name } }') => ({
  query,
  extensions: { operationId: id },
});

export const codeOf = async (response: Response): Promise<unknown> =>
  ((await response.json()) as { errors: { extensions: { code: string } }[] }).errors[0]?.extensions.code;

/** Single-connection mode by hand, for what no client does. */
export class StreamByHand {
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  async reserve(headers: Record<string, string> = {}): Promise<{ response: Response; token: string }> {
    const response = await fetch(this.url, { method: 'PUT', headers });
    return { response, token: response.status === 201 ? await response.text() : '' };
  }

  async connect(token: string, headers: Record<string, string> = {}) {
    const left = new AbortController();
    const response = await fetch(`${this.url}?token=${token}`, {
      headers: { ...headers, accept: 'text/event-stream' },
      signal: left.signal,
    });
    const reader = response.ok ? response.body?.pipeThrough(new TextDecoderStream()).getReader() : undefined;
    /** Reads until the text says it; the text so far. */
    const readUntil = async (wanted: string): Promise<string> => {
      let text = '';
      while (!text.includes(wanted)) {
        const chunk = await reader?.read();
        if (!chunk || chunk.done) break;
        text += chunk.value;
      }
      return text;
    };
    return { response, readUntil, leave: () => left.abort() };
  }

  send(token: string, operation: object, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(this.url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'x-graphql-event-stream-token': token },
      body: JSON.stringify(operation),
    });
  }

  complete(token: string, operationId: string, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`${this.url}?token=${token}&operationId=${operationId}`, { method: 'DELETE', headers });
  }
}
