import type { Setting, SettingWithDefault } from './setting.ts';
import { type OtlpProtocol, type Sampler, telemetrySettings } from './telemetry-settings.ts';

/** Spans are sent, and how. What is not here, the exporter reads from its standard variables. */
export interface TelemetryConfig {
  /** As the settings have it; null is the exporter's default. */
  readonly endpoint: string | null;
  readonly protocol: OtlpProtocol;
  readonly serviceName: string;
  readonly sampler: Sampler;
  readonly ratio: number;
}

interface Reader {
  <T>(name: keyof typeof telemetrySettings, setting: SettingWithDefault<T>): T;
  <T>(name: keyof typeof telemetrySettings, setting: Setting<T>): T | null;
}

type Given = (name: keyof typeof telemetrySettings) => string | null;

function spansAreOn(given: Given): boolean {
  const disabled = given('OTEL_SDK_DISABLED');
  if (disabled !== null && telemetrySettings.OTEL_SDK_DISABLED.parse(disabled)) return false;
  const exporters = given('OTEL_TRACES_EXPORTER')?.split(',') ?? [];
  if (exporters.includes('none')) return false;
  const endpoints = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] as const;
  return exporters.includes('otlp') || endpoints.some((name) => given(name) !== null);
}

/**
 * Null: there are no spans. The variables are everybody's, and what they say to others is often nothing that is known here:
 * they are only read, and found wrong, where there are spans.
 */
export function readTelemetry(read: Reader, given: Given): TelemetryConfig | null {
  if (!spansAreOn(given)) return null;
  const s = telemetrySettings;
  read('OTEL_SDK_DISABLED', s.OTEL_SDK_DISABLED);
  read('OTEL_TRACES_EXPORTER', s.OTEL_TRACES_EXPORTER);
  const endpoint =
    given('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') === null
      ? read('OTEL_EXPORTER_OTLP_ENDPOINT', s.OTEL_EXPORTER_OTLP_ENDPOINT)
      : read('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', s.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT);
  const protocol =
    given('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL') === null
      ? read('OTEL_EXPORTER_OTLP_PROTOCOL', s.OTEL_EXPORTER_OTLP_PROTOCOL)
      : read('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', s.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL);
  return Object.freeze({
    endpoint,
    protocol: protocol ?? 'http/protobuf',
    serviceName: read('OTEL_SERVICE_NAME', s.OTEL_SERVICE_NAME),
    sampler: read('OTEL_TRACES_SAMPLER', s.OTEL_TRACES_SAMPLER),
    ratio: read('OTEL_TRACES_SAMPLER_ARG', s.OTEL_TRACES_SAMPLER_ARG),
  });
}
