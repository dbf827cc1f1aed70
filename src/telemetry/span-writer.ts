import { type Attributes, type Context, context, type SpanStatus, trace } from '@opentelemetry/api';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BasicTracerProvider,
  BatchSpanProcessor,
  type IdGenerator,
  ParentBasedSampler,
  RandomIdGenerator,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-base';
import type { TraceContext } from '../domain/trace-context.ts';
import type { SpanOptions, SpanWriter, SpanWriterOptions } from './types.ts';

/** The ids of the next span, where they are not random. */
class PlannedIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  traceId: string | null = null;
  spanId: string | null = null;

  generateTraceId(): string {
    return this.traceId ?? this.#random.generateTraceId();
  }

  generateSpanId(): string {
    return this.spanId ?? this.#random.generateSpanId();
  }
}

/** Sends spans to an OTLP receiver, in batches. Only who writes spans loads this, and the SDK with it. */
export function createSpanWriter({ config, version, instanceId }: SpanWriterOptions): SpanWriter {
  const ids = new PlannedIds();
  const sampler = samplerOf(config.sampler, config.ratio);
  const exporter = config.protocol === 'http/json' ? new JsonExporter() : new ProtobufExporter();
  const provider = new BasicTracerProvider({
    idGenerator: ids,
    sampler,
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.version': version, 'service.instance.id': instanceId }))
      .merge(detectResources({ detectors: [envDetector] }))
      .merge(resourceFromAttributes({ 'service.name': config.serviceName })),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  const tracer = provider.getTracer('runplane', version);
  return {
    isSampled: (traceId, parent) => {
      const { decision } = sampler.shouldSample(contextOf(parent), traceId, 'intake', 0, {}, []);
      return decision === SamplingDecision.RECORD_AND_SAMPLED;
    },
    write: ({ name, kind, traceId, spanId, parent, links, startedAt, endedAt, attributes, status }) => {
      ids.traceId = traceId;
      ids.spanId = spanId;
      const span = tracer.startSpan(
        name,
        {
          kind,
          startTime: startedAt,
          attributes: known(attributes),
          links: links.map((link) => ({ context: spanContextOf(link) })),
        },
        contextOf(parent),
      );
      ids.traceId = null;
      ids.spanId = null;
      if (status) span.setStatus(status satisfies SpanStatus);
      span.end(endedAt);
    },
    stop: () => provider.shutdown(),
  };
}

const spanContextOf = ({ traceId, spanId, sampled }: TraceContext) => ({
  traceId,
  spanId,
  traceFlags: sampled ? 1 : 0,
  isRemote: true,
});

const nowhere = context.active();

const contextOf = (parent: TraceContext | null): Context =>
  parent ? trace.setSpanContext(nowhere, spanContextOf(parent)) : nowhere;

/** Without those that are not known. */
function known(attributes: SpanOptions['attributes']): Attributes {
  const kept: Attributes = {};
  for (const [name, value] of Object.entries(attributes)) if (value !== null) kept[name] = value;
  return kept;
}

function samplerOf(name: SpanWriterOptions['config']['sampler'], ratio: number): Sampler {
  const parentBased = name.startsWith('parentbased_');
  const root = name.endsWith('always_on')
    ? new AlwaysOnSampler()
    : name.endsWith('always_off')
      ? new AlwaysOffSampler()
      : new TraceIdRatioBasedSampler(ratio);
  return parentBased ? new ParentBasedSampler({ root }) : root;
}
