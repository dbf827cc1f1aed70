import fc from 'fast-check';
import { expect, test } from 'vitest';
import { InterestGroups } from '../../src/changelog/interest-groups.ts';

interface Entry {
  keys: string[];
}

const key = fc.constantFrom('a', 'b', 'c', 'd');
const entry = fc.record({ keys: fc.uniqueArray(key, { maxLength: 3 }) });
const interest = fc.option(fc.uniqueArray(key, { maxLength: 3 }), { nil: null });
const step = fc.oneof(
  fc.record({ do: fc.constant('join' as const), member: fc.nat(9), keys: interest }),
  fc.record({ do: fc.constant('leave' as const), member: fc.nat(9) }),
  fc.record({ do: fc.constant('read' as const), entries: fc.array(entry, { maxLength: 5 }) }),
);

const interestOf = (keys: readonly string[] | null) => ({ name: JSON.stringify(keys), keys, scope: null });

test('everybody is given the entries that have one of his keys, once and in order, and those who ask for the same one list', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const groups = new InterestGroups<Entry, number, null>(({ keys }) => keys);
      const joined = new Map<number, string[] | null>();
      for (const next of steps) {
        if (next.do === 'read') {
          const given = new Map<number, readonly Entry[]>();
          for (const [own, members] of groups.concerned(next.entries)) {
            for (const member of members) {
              expect(given.has(member)).toBe(false);
              given.set(member, own);
            }
          }
          for (const [member, keys] of joined) {
            const wanted = next.entries.filter(
              (one) => keys === null || one.keys.some((k) => keys.includes(k)),
            );
            expect(given.get(member) ?? []).toEqual(wanted);
          }
          const lists = new Map<string, readonly Entry[]>();
          for (const [member, own] of given) {
            const { name } = interestOf(joined.get(member) ?? null);
            expect(lists.get(name) ?? own).toBe(own);
            expect([...lists].filter(([other, list]) => list === own && other !== name)).toEqual([]);
            lists.set(name, own);
          }
          continue;
        }
        const before = joined.get(next.member);
        if (before !== undefined) groups.delete(next.member, interestOf(before));
        joined.delete(next.member);
        if (next.do === 'join') {
          groups.add(next.member, interestOf(next.keys));
          joined.set(next.member, next.keys);
        }
      }
    }),
    { numRuns: 500 },
  );
});
