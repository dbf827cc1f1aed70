import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { limits } from '../domain/limits.ts';

/** Writes an event stream no faster than its client reads. */
export class EventWriter {
  readonly #response: ServerResponse;
  readonly #unreadSeconds: number;

  /** A client that leaves what was sent to it unread for longer is left. */
  constructor(response: ServerResponse, unreadSeconds: number = limits.streamUnreadSeconds) {
    this.#response = response;
    this.#unreadSeconds = unreadSeconds;
  }

  get closed(): boolean {
    return this.#response.destroyed || this.#response.writableEnded;
  }

  open(): void {
    this.#response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      connection: 'keep-alive',
    });
    // Spread out, so that the clients of a replica that stops do not come back all at once.
    this.#response.write(`retry: ${1000 + Math.floor(Math.random() * 2000)}\n\n`);
  }

  /** Writes what the client has room for at once; else nothing, and says so. */
  writeNow(event: Buffer): boolean {
    if (this.closed || this.#response.writableNeedDrain) return false;
    this.#response.write(event);
    return true;
  }

  /** Settles when the client took it: a slow client slows only its own stream. One that stands still is left. */
  async write(event: Buffer | string): Promise<void> {
    if (this.closed || this.#response.write(event)) return;
    const left = new AbortController();
    const closed = (): void => left.abort();
    const stalled = setTimeout(() => this.#response.destroy(), this.#unreadSeconds * 1000);
    this.#response.once('close', closed);
    await once(this.#response, 'drain', { signal: left.signal }).catch(() => {});
    this.#response.off('close', closed);
    clearTimeout(stalled);
  }

  end(text = ''): void {
    if (!this.closed) this.#response.end(text);
  }
}
