import { expect, test } from 'vitest';
import { formatTraceparent, parseTraceparent, traceparentOf } from '../../src/domain/trace-context.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const spanId = '00f067aa0ba902b7';

test.each([
  [`00-${traceId}-${spanId}-01`, true],
  [`00-${traceId}-${spanId}-00`, false],
  [`00-${traceId}-${spanId}-03`, true],
  // Of a later version the parts that are known are used.
  [`01-${traceId}-${spanId}-01-more`, true],
  [`cc-${traceId}-${spanId}-00`, false],
])('%s is a trace context', (header, sampled) => {
  expect(parseTraceparent(header)).toEqual({ traceId, spanId, sampled });
});

test.each([
  null,
  undefined,
  '',
  'no trace',
  `ff-${traceId}-${spanId}-01`,
  `00-${'0'.repeat(32)}-${spanId}-01`,
  `00-${traceId}-${'0'.repeat(16)}-01`,
  `00-${traceId.toUpperCase()}-${spanId}-01`,
  `00-${traceId}-${spanId}-01-more`,
  `00-${traceId}-${spanId}-01-`,
  `00-${traceId}-${spanId}`,
  `00-${traceId}-${spanId}-1`,
  ` 00-${traceId}-${spanId}-01`,
  `00-${traceId}-${spanId}-01\n`,
])('%j is none', (header) => {
  expect(parseTraceparent(header)).toBeNull();
});

test('a worker continues the context that came with the work, else one of the event, else of the run', () => {
  const work = {
    attemptId: '0199aaaa-0000-7000-8123-456789abcdef',
    runId: '0199bbbb-0000-7000-8000-000000000002',
    eventId: '0199cccc-0000-7000-8000-000000000003',
    traceContext: null,
  };
  expect(traceparentOf(work)).toBe('00-0199cccc000070008000000000000003-8123456789abcdef-01');
  expect(traceparentOf({ ...work, eventId: null })).toBe(
    '00-0199bbbb000070008000000000000002-8123456789abcdef-01',
  );
  const given = { traceId, spanId, sampled: false };
  expect(traceparentOf({ ...work, traceContext: `${traceId}${spanId}00` })).toBe(formatTraceparent(given));
});
