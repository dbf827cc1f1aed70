import { type Chunks, type Flaw, notUtf8, type Piece, tooLong } from './pieces.ts';

/**
 * The entries of a list, or the one value that is no list. Only cuts the text where a value ends; whether what lies
 * between is JSON is for who parses it. At most one value is kept at a time.
 */
export async function* readJson(chunks: Chunks, maxBytes: number): AsyncGenerator<Piece | Flaw> {
  const splitter = new Splitter(maxBytes);
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const decode = (chunk?: Uint8Array): string | null => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined });
    } catch {
      return null;
    }
  };
  for await (const chunk of chunks) {
    const text = decode(chunk);
    if (text === null) {
      yield notUtf8(splitter.line, splitter.read);
      return;
    }
    yield* splitter.split(text);
  }
  if (decode() === null) yield notUtf8(splitter.line, splitter.read);
  else yield* splitter.end();
}

class Splitter {
  readonly #maxBytes: number;
  line = 1;
  /** Characters so far. */
  read = 0;
  #shape: 'unknown' | 'list' | 'value' | 'over' = 'unknown';
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  #place = 0;
  /** Of the value that is read; null: none has begun. */
  #startLine: number | null = null;
  #text = '';
  #isTooLong = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  *split(text: string): Generator<Piece | Flaw> {
    let from = 0;
    for (let i = 0; i < text.length; i++) {
      const character = text[i] as string;
      this.read++;
      if (character === '\n') this.line++;
      if (this.#inString) this.#readString(character);
      else if (this.#isOutside(character)) from = i + 1;
      else if (this.#shape === 'list' && this.#depth === 0 && (character === ',' || character === ']')) {
        this.#keep(text.slice(from, i));
        from = i + 1;
        const found = this.#finish(character === ']');
        if (found) yield found;
        if (character === ']') this.#shape = 'over';
      } else this.#readStructure(character);
    }
    this.#keep(text.slice(from));
  }

  *end(): Generator<Piece | Flaw> {
    if (this.#shape === 'list') {
      yield this.#flaw(this.#startLine ?? this.line, 'The list has no end.');
    } else {
      const found = this.#finish(true);
      if (found) yield found;
    }
  }

  /** Takes what is between values: white space, and the bracket that begins a list. */
  #isOutside(character: string): boolean {
    if (this.#startLine !== null) return false;
    if (/\s/.test(character)) return true;
    if (this.#shape === 'unknown') {
      this.#shape = character === '[' ? 'list' : 'value';
      if (character === '[') return true;
    }
    this.#startLine = this.line;
    return false;
  }

  #readString(character: string): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (character === '\\') this.#isEscaped = true;
    else if (character === '"') this.#inString = false;
  }

  #readStructure(character: string): void {
    if (character === '"') this.#inString = true;
    else if (character === '{' || character === '[') this.#depth++;
    else if (character === '}' || character === ']') this.#depth--;
  }

  #keep(text: string): void {
    if (this.#startLine === null || this.#isTooLong) return;
    this.#text += text;
    // A character has at least as many bytes; what comes near the limit is measured by who sends it.
    if (this.#text.length <= this.#maxBytes) return;
    this.#isTooLong = true;
    this.#text = '';
  }

  /** The value that has ended. Only before the end of a list, or of the text, may there be none. */
  #finish(isLast: boolean): Piece | Flaw | null {
    const [text, line, isTooLong] = [this.#text.trim(), this.#startLine ?? this.line, this.#isTooLong];
    const isMissing = this.#startLine === null || text === '';
    this.#text = '';
    this.#startLine = null;
    this.#isTooLong = false;
    this.#depth = 0;
    if (isTooLong) return tooLong(line, this.read, this.#maxBytes);
    if (isMissing) return isLast ? null : this.#flaw(line, 'is missing before a comma.');
    if (this.#shape === 'over') return this.#flaw(line, 'follows the end of the list.');
    return { kind: 'text', line, place: this.#place++, text, end: this.read };
  }

  #flaw(line: number, message: string): Flaw {
    return { kind: 'flaw', line, message, end: this.read };
  }
}
