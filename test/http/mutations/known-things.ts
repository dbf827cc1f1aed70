/** What mutations may name that is there: it grows with every answer. */
const remembered = 300;

const kinds = {
  dead_letter: 'dlq',
  event: 'evt',
  run: 'run',
  task: 'task',
  attempt: 'att',
  token: 'tok',
  agent: 'agent',
  throttle: 'thr',
  queue: 'queue',
  pool: 'pool',
  route: 'route',
  topic: null,
  step: null,
  job: 'job',
  asset: 'asset',
  depends_on: null,
} as const;

export type Kind = keyof typeof kinds;

export interface Lease {
  attemptId: string;
  leaseToken: string;
}

export class KnownThings {
  readonly #ids = new Map<string, string[]>();
  readonly #names = new Map<Kind, string[]>();
  readonly #leases: Lease[] = [];
  readonly #secrets: string[] = [];

  /** What a field is about, by its name, else by the name of its mutation or input type. */
  static kindOf(owner: string, field: string): Kind | null {
    const within = (text: string): Kind | null => {
      const words = text.replace(/[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
      return (Object.keys(kinds) as Kind[]).find((kind) => words.includes(kind)) ?? null;
    };
    return within(field) ?? (['id', 'ids', 'name'].includes(field) ? within(owner) : null);
  }

  addName(kind: Kind, ...names: string[]): void {
    this.#names.set(kind, [...(this.#names.get(kind) ?? []), ...names]);
  }

  name(kind: Kind, n: number): string | null {
    const names = this.#names.get(kind === 'depends_on' ? 'step' : kind) ?? [];
    return names[n % names.length] ?? null;
  }

  /** An id of a kind, the newest first; of any kind where there is none. */
  id(kind: Kind | null, n: number): string {
    const prefix = kind && kinds[kind];
    const ids = (prefix && this.#ids.get(prefix)) || [...this.#ids.values()][n % this.#ids.size] || [];
    return ids[ids.length - 1 - (n % Math.max(1, ids.length))] ?? 'run_01h00000000000000000000000';
  }

  /** The newest have the small numbers: of them most are still held. */
  lease(n: number): Lease | null {
    return this.#leases[this.#leases.length - 1 - (n % Math.max(1, this.#leases.length))] ?? null;
  }

  /** A text of an answer that no message may quote. */
  secretIn(text: string): string | null {
    return this.#secrets.find((secret) => text.includes(secret)) ?? null;
  }

  addLease(lease: Lease): void {
    keep(this.#leases, lease);
    keep(this.#secrets, lease.leaseToken);
  }

  /** Remembers every id, lease and secret of an answer. */
  learn(answer: unknown): void {
    if (typeof answer === 'string') this.#learnId(answer);
    if (typeof answer !== 'object' || answer === null) return;
    const { attemptId, leaseToken, secret } = answer as Record<string, unknown>;
    if (typeof attemptId === 'string' && typeof leaseToken === 'string')
      this.addLease({ attemptId, leaseToken });
    if (typeof secret === 'string') keep(this.#secrets, secret);
    for (const value of Object.values(answer)) this.learn(value);
  }

  #learnId(text: string): void {
    const prefix = /^([a-z]+)_[0-9a-z]{26}$/.exec(text)?.[1];
    if (!prefix) return;
    const ids = this.#ids.get(prefix) ?? [];
    if (!ids.includes(text)) keep(ids, text);
    this.#ids.set(prefix, ids);
  }
}

/** Forgets one of the oldest where there are too many. */
function keep<T>(list: T[], entry: T): void {
  if (list.length >= remembered) list.shift();
  list.push(entry);
}
