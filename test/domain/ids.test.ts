import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fromPublicId, toPublicId, toPublicLogId } from '../../src/domain/ids.ts';

test('a public id is of its UUID, and leads back to it', () => {
  fc.assert(
    fc.property(fc.uuid(), (uuid) => {
      expect(fromPublicId('task', toPublicId('task', uuid))).toBe(uuid);
    }),
  );
});

test('the public id of an entry of a log is the one of a UUID that is its number', () => {
  const uuidOf = (number: number): string => {
    const hex = number.toString(16).padStart(16, '0');
    return `00000000-0000-0000-${hex.slice(0, 4)}-${hex.slice(4)}`;
  };
  fc.assert(
    fc.property(fc.oneof(fc.maxSafeNat(), fc.nat(), fc.constantFrom(2 ** 30, 2 ** 32)), (number) => {
      expect(toPublicLogId('chg', number)).toBe(toPublicId('chg', uuidOf(number)));
    }),
  );
});
