import type { WriteStream } from 'node:tty';

/** Where progress is told: a terminal shows it in one line that is written again and again. */
export type Output = Pick<NodeJS.WriteStream, 'write'> & Partial<Pick<WriteStream, 'isTTY' | 'columns'>>;

const redrawEveryMs = 100;
const tellEveryMs = 5_000;
const barCells = 24;

/** How far publishing is: a bar on a terminal, else a line every 5 s. */
export class Progress {
  readonly #output: Output;
  /** Null: nobody knows how much there will be. */
  readonly #totalBytes: number | null;
  readonly #startedAt = performance.now();
  #toldAt = 0;
  #events = 0;
  #bytes = 0;
  #isDrawn = false;

  constructor(output: Output, totalBytes: number | null) {
    this.#output = output;
    this.#totalBytes = totalBytes;
    this.#toldAt = this.#startedAt;
  }

  /** So much is done by now. */
  update(events: number, bytes: number): void {
    this.#events = events;
    this.#bytes = bytes;
    const now = performance.now();
    const every = this.#output.isTTY ? redrawEveryMs : tellEveryMs;
    if (now - this.#toldAt < every) return;
    this.#toldAt = now;
    if (this.#output.isTTY) this.#draw();
    else this.#output.write(`${this.#told()}\n`);
  }

  /** A line of its own, which stays. */
  note(line: string): void {
    this.#erase();
    this.#output.write(`${line}\n`);
    if (this.#output.isTTY) this.#draw();
  }

  end(): void {
    this.#erase();
  }

  #draw(): void {
    this.#erase();
    // What is wider than the terminal could not be erased; one that does not know its width says 0.
    this.#output.write(`${this.#bar()}${this.#told()}`.slice(0, (this.#output.columns || 80) - 1));
    this.#isDrawn = true;
  }

  #erase(): void {
    if (this.#isDrawn) this.#output.write('\r\u001b[K');
    this.#isDrawn = false;
  }

  get #share(): number | null {
    return this.#totalBytes === null ? null : Math.min(1, this.#bytes / Math.max(1, this.#totalBytes));
  }

  #bar(): string {
    const share = this.#share;
    if (share === null) return '';
    const full = Math.round(share * barCells);
    return `[${'#'.repeat(full)}${'-'.repeat(barCells - full)}] `;
  }

  #told(): string {
    const seconds = (performance.now() - this.#startedAt) / 1000;
    const share = this.#share;
    const percent = share === null ? '' : `${Math.floor(share * 100)} %, `;
    return `${percent}${this.#events} events, ${Math.round(this.#events / Math.max(seconds, 0.001))} a second`;
  }
}
