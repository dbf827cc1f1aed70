/** Why a template has no meaning, at a place in its text. */
export class SyntaxFault extends Error {}

const tokenPattern =
  /\s*(?:(?<number>\d+(?:\.\d+)?)|(?<word>[a-zA-Z_]\w*)|(?<string>'[^']*'|"[^"]*")|(?<symbol>\*\*|>=|<=|==|!=|&&|\|\||[-+*/[\].(){}:,<>!]))/y;
const keywords = new Set(['true', 'false', 'null', 'in']);
const literals = new Set(['number', 'true', 'false', 'null']);
const binaryOperators = new Set([
  '||',
  '&&',
  'in',
  '==',
  '!=',
  '<',
  '>',
  '<=',
  '>=',
  '+',
  '-',
  '*',
  '/',
  '**',
]);
/** The renderer goes several calls deeper with each level, so that text alone could exhaust its stack. */
const maxNesting = 100;

/** What an expression says of what it will be evaluated with. */
export interface Mentions {
  /** Names, with what stands behind their point. */
  names: { name: string; member: string | null }[];
  /** Texts, by which it may ask whether there is what it names. */
  texts: string[];
}

/** What a text's next token is: a symbol or keyword itself, or the kind of any other. */
interface Token {
  kind: string;
  start: number;
  end: number;
}

/**
 * Recognises expressions of json-e, which has no way to check one without evaluating it. Evaluation finds a fault only
 * where it gets to, and only with the values of a real run. Which operator binds closer is of no interest here.
 */
class Recogniser {
  readonly #text: string;
  #next: Token;
  #nesting = 0;
  readonly #mentions: Mentions;

  constructor(text: string, start: number, mentions: Mentions) {
    this.#text = text;
    this.#mentions = mentions;
    this.#next = this.#read(start);
  }

  /** Takes one expression and the token that ends it; where that token ends. */
  expressionUntil(terminator: '}' | 'end'): number {
    this.#expression();
    const { end } = this.#next;
    if (this.#next.kind !== terminator)
      this.#unexpected(terminator === 'end' ? 'an operator' : '} or an operator');
    return end;
  }

  #expression(): void {
    if (++this.#nesting > maxNesting) throw new SyntaxFault(`it is nested deeper than ${maxNesting} levels`);
    this.#operand();
    while (binaryOperators.has(this.#next.kind)) {
      this.#take();
      this.#operand();
    }
    this.#nesting--;
  }

  #operand(): void {
    while (['-', '+', '!'].includes(this.#next.kind)) this.#take();
    if (literals.has(this.#next.kind)) this.#take();
    else if (this.#next.kind === 'identifier') this.#name();
    else if (this.#next.kind === 'string') {
      this.#mentions.texts.push(this.#word().slice(1, -1));
      this.#take();
    } else if (this.#takeIf('(')) {
      this.#expression();
      this.#expect(')');
    } else if (this.#takeIf('[')) this.#list(']');
    else if (this.#takeIf('{')) this.#object();
    else this.#unexpected('a value');
    this.#accesses();
  }

  #name(): void {
    const name = this.#word();
    this.#take();
    const member = this.#takeIf('.') ? this.#word() : null;
    if (member !== null) this.#expect('identifier');
    this.#mentions.names.push({ name, member });
  }

  #accesses(): void {
    for (;;) {
      if (this.#takeIf('.')) this.#expect('identifier');
      else if (this.#takeIf('(')) this.#list(')');
      else if (this.#takeIf('[')) this.#indexOrSlice();
      else return;
    }
  }

  #list(end: ']' | ')'): void {
    if (this.#takeIf(end)) return;
    do this.#expression();
    while (this.#takeIf(','));
    this.#expect(end);
  }

  #object(): void {
    while (this.#takeIf('string') || this.#takeIf('identifier')) {
      this.#expect(':');
      this.#expression();
      if (!this.#takeIf(',')) break;
    }
    this.#expect('}');
  }

  /** [a], [a:], [:b], [a:b], [:]. */
  #indexOrSlice(): void {
    if (this.#next.kind !== ':') this.#expression();
    if (this.#takeIf(':') && this.#next.kind !== ']') this.#expression();
    this.#expect(']');
  }

  #word(): string {
    return this.#text.slice(this.#next.start, this.#next.end);
  }

  #expect(kind: string): void {
    if (!this.#takeIf(kind)) this.#unexpected(kind === 'identifier' ? 'a name' : kind);
  }

  #takeIf(kind: string): boolean {
    if (this.#next.kind !== kind) return false;
    this.#take();
    return true;
  }

  #take(): void {
    this.#next = this.#read(this.#next.end);
  }

  #read(from: number): Token {
    tokenPattern.lastIndex = from;
    const match = tokenPattern.exec(this.#text);
    if (!match) {
      const rest = this.#text.slice(from).trimStart();
      const start = this.#text.length - rest.length;
      if (rest === '') return { kind: 'end', start, end: start };
      throw new SyntaxFault(`what stands at character ${start + 1} belongs to no expression`);
    }
    const { number, word, string, symbol } = match.groups ?? {};
    const end = tokenPattern.lastIndex;
    const start = end - (number ?? word ?? string ?? symbol ?? '').length;
    if (symbol !== undefined) return { kind: symbol, start, end };
    if (word !== undefined) return { kind: keywords.has(word) ? word : 'identifier', start, end };
    return { kind: number === undefined ? 'string' : 'number', start, end };
  }

  #unexpected(wanted: string): never {
    const where = this.#next.kind === 'end' ? 'at its end' : `at character ${this.#next.start + 1}`;
    throw new SyntaxFault(`${wanted} is expected ${where}`);
  }
}

/** Throws a SyntaxFault when a text is no expression; adds what it mentions. */
export function checkExpression(text: string, mentions: Mentions): void {
  new Recogniser(text, 0, mentions).expressionUntil('end');
}

/** Throws a SyntaxFault when a text has a ${…} that is no expression; adds what they mention. $${ stands for itself. */
export function checkInterpolations(text: string, mentions: Mentions): void {
  for (let at = text.indexOf('${'); at >= 0; at = text.indexOf('${', at)) {
    at = text[at - 1] === '$' ? at + 2 : new Recogniser(text, at + 2, mentions).expressionUntil('}');
  }
}
