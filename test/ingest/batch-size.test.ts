import { expect, test } from 'vitest';
import { BatchSize } from '../../src/ingest/batch-size.ts';

test('grows while there is time, up to what is set', () => {
  const size = new BatchSize(30, 100);
  expect(size.size).toBe(10);
  for (const expected of [20, 40, 80, 100, 100]) {
    size.took(10, 10);
    expect(size.size).toBe(expected);
  }
});

test('is what is stored within half the ack wait, as soon as that is known', () => {
  const size = new BatchSize(30, 100);
  for (let i = 0; i < 5; i++) size.took(100, 10);
  size.took(100, 60_000);
  expect(size.size).toBe(25);
  size.took(25, 60_000);
  expect(size.size).toBe(6);
  size.took(6, 600_000);
  expect(size.size).toBe(1);
  size.took(1, 1);
  expect(size.size).toBe(2);
});

test('never begins with more than is set', () => {
  expect(new BatchSize(30, 3).size).toBe(3);
});
