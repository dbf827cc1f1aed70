import { expect, test } from 'vitest';
import { findLoss, type StreamState } from '../../src/ingest/loss.ts';

const hole = (from: number, to = from) => ({ from, to });
const state = (more: Partial<StreamState>): StreamState => ({
  holes: [hole(5, 20)],
  firstSequence: 1,
  delivered: 4,
  worked: 0,
  exhausted: 0,
  ...more,
});

test('what was never delivered and is gone is lost at once', () => {
  expect(findLoss(state({ firstSequence: 11 }))).toEqual({ lost: [hole(5, 10)], abandoned: [] });
});

test('what was delivered and is gone may be in work, until its time is over', () => {
  expect(findLoss(state({ firstSequence: 11, delivered: 8 }))).toEqual({
    lost: [hole(9, 10)],
    abandoned: [],
  });
  expect(findLoss(state({ firstSequence: 11, delivered: 8, worked: 7 }))).toEqual({
    lost: [hole(5, 7), hole(9, 10)],
    abandoned: [],
  });
  expect(findLoss(state({ firstSequence: 11, delivered: 8, worked: 8 }))).toEqual({
    lost: [hole(5, 8), hole(9, 10)],
    abandoned: [],
  });
});

test('what is still there is read by its number when its time is over, and not before', () => {
  expect(findLoss(state({ delivered: 20 }))).toEqual({ lost: [], abandoned: [] });
  expect(findLoss(state({ delivered: 20, worked: 12, exhausted: 9, firstSequence: 7 }))).toEqual({
    lost: [hole(5, 6)],
    abandoned: [hole(7, 9)],
  });
});

test('a stream that lost everything lost all that was not handled', () => {
  expect(findLoss(state({ holes: [hole(2), hole(5, 20)], firstSequence: 21, worked: 4 }))).toEqual({
    lost: [hole(2), hole(5, 20)],
    abandoned: [],
  });
});
