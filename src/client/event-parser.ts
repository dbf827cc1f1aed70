export interface ServerEvent {
  event: string;
  data: string;
}

/** Reads an event stream from its text, however it is cut. */
export class EventParser {
  /** Milliseconds that the server asks to wait before a reconnect. */
  retryMs: number | null = null;
  #rest = '';
  #held = '';
  #event = '';
  #data: string[] = [];

  push(text: string): ServerEvent[] {
    // Whether the end of a line goes on is not known before its next character.
    const known = this.#held + text;
    this.#held = known.endsWith('\r') ? '\r' : '';
    const [first = '', ...lines] = known.slice(0, known.length - this.#held.length).split(/\r\n|\n|\r/);
    this.#rest += first;
    const next = lines.pop();
    if (next === undefined) return [];
    lines.unshift(this.#rest);
    this.#rest = next;
    return lines.flatMap((line) => this.#read(line) ?? []);
  }

  #read(line: string): ServerEvent | null {
    if (line === '') return this.#dispatch();
    const [, field = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (field === 'event') this.#event = value;
    else if (field === 'data') this.#data.push(value);
    else if (field === 'retry' && /^\d+$/.test(value)) this.retryMs = Number(value);
    return null;
  }

  #dispatch(): ServerEvent | null {
    const event = this.#event === '' && this.#data.length === 0 ? null : this.#event || 'message';
    const data = this.#data.join('\n');
    this.#event = '';
    this.#data = [];
    return event === null ? null : { event, data };
  }
}
