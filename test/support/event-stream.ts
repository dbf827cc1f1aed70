export interface StreamEvent {
  event: string;
  id: string | null;
  data: string;
}

export interface EventStream {
  response: Response;
  /** Null: the server ended it. */
  next(): Promise<StreamEvent | null>;
  leave(): void;
}

/** Opens a stream and reads its events one by one. */
export async function openEventStream(
  url: string,
  query: string,
  headers: Record<string, string> = {},
): Promise<EventStream> {
  const left = new AbortController();
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers },
    body: JSON.stringify({ query }),
    signal: left.signal,
  });
  if (!response.body) throw new Error('no body');
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const next = async (): Promise<StreamEvent | null> => {
    for (;;) {
      const end = text.indexOf('\n\n');
      if (end < 0) {
        const { done, value } = await reader.read();
        if (done) return null;
        text += value;
        continue;
      }
      const fields = new Map(
        text
          .slice(0, end)
          .split('\n')
          .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]),
      );
      text = text.slice(end + 2);
      if (fields.has('event'))
        return {
          event: fields.get('event') ?? '',
          id: fields.get('id') ?? null,
          data: fields.get('data') ?? '',
        };
    }
  };
  return { response, next, leave: () => left.abort() };
}
