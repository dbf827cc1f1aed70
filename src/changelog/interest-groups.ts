import type { Interest } from './interest.ts';

interface Group<Member, Scope> {
  interest: Interest<Scope>;
  members: Set<Member>;
}

/** Who is concerned with what: found by the keys of an entry, not by asking everybody. */
export class InterestGroups<Entry, Member, Scope> {
  readonly #keysOf: (entry: Entry) => readonly string[];
  readonly #byName = new Map<string, Group<Member, Scope>>();
  readonly #byKey = new Map<string, Set<Group<Member, Scope>>>();
  readonly #inAny = new Set<Group<Member, Scope>>();

  constructor(keysOf: (entry: Entry) => readonly string[]) {
    this.#keysOf = keysOf;
  }

  add(member: Member, interest: Interest<Scope>): void {
    let group = this.#byName.get(interest.name);
    if (!group) {
      group = { interest, members: new Set() };
      this.#byName.set(interest.name, group);
      if (interest.keys === null) this.#inAny.add(group);
      for (const key of interest.keys ?? []) {
        const others = this.#byKey.get(key);
        if (others) others.add(group);
        else this.#byKey.set(key, new Set([group]));
      }
    }
    group.members.add(member);
  }

  delete(member: Member, interest: Interest<Scope>): void {
    const group = this.#byName.get(interest.name);
    if (!group?.members.delete(member) || group.members.size > 0) return;
    this.#byName.delete(interest.name);
    this.#inAny.delete(group);
    for (const key of interest.keys ?? []) {
      const others = this.#byKey.get(key);
      others?.delete(group);
      if (others?.size === 0) this.#byKey.delete(key);
    }
  }

  /** What has to be read for all of them. */
  *scopes(): Generator<Scope> {
    for (const { interest } of this.#byName.values()) yield interest.scope;
  }

  /** The entries that may concern somebody, in their order: one list for all who ask for the same, and its own. */
  *concerned(entries: readonly Entry[]): Generator<[readonly Entry[], ReadonlySet<Member>]> {
    if (entries.length === 0) return;
    const concerned = new Map<Group<Member, Scope>, Entry[]>();
    for (const group of this.#inAny) concerned.set(group, [...entries]);
    for (const entry of this.#byKey.size === 0 ? [] : entries) {
      for (const key of this.#keysOf(entry)) {
        for (const group of this.#byKey.get(key) ?? []) {
          const own = concerned.get(group);
          if (!own) concerned.set(group, [entry]);
          else if (own.at(-1) !== entry) own.push(entry);
        }
      }
    }
    for (const [group, own] of concerned) yield [own, group.members];
  }
}
