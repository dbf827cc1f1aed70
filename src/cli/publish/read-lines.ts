import { type Chunks, type Flaw, notUtf8, type Piece, tooLong } from './pieces.ts';

const lineFeed = 0x0a;

/** Every line that is not blank. A line that is too long is passed over without being kept. */
export async function* readLines(chunks: Chunks, maxBytes: number): AsyncGenerator<Piece | Flaw> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let line = 0;
  let read = 0;
  let parts: Uint8Array[] = [];
  let bytes = 0;
  const add = (part: Uint8Array): void => {
    bytes += part.length;
    if (bytes > maxBytes) parts = [];
    else parts.push(part);
  };
  const finish = (): Piece | Flaw | null => {
    line++;
    const end = (read += bytes + 1);
    const [whole, size] = [Buffer.concat(parts), bytes];
    parts = [];
    bytes = 0;
    if (size > maxBytes) return tooLong(line, end, maxBytes);
    try {
      // The decoder leaves out a byte order mark.
      const text = decoder.decode(whole).trim();
      return text === '' ? null : { kind: 'text', line, place: line, text, end };
    } catch {
      return notUtf8(line, end);
    }
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(lineFeed); end !== -1; end = chunk.indexOf(lineFeed, start)) {
      add(chunk.subarray(start, end));
      start = end + 1;
      const found = finish();
      if (found) yield found;
    }
    add(chunk.subarray(start));
  }
  const last = finish();
  if (last) yield last;
}
