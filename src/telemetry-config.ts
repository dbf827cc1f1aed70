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

/** Null: there are no spans. */
export function readTelemetry(read: Reader): TelemetryConfig | null {
  const s = telemetrySettings;
  const base = read('OTEL_EXPORTER_OTLP_ENDPOINT', s.OTEL_EXPORTER_OTLP_ENDPOINT);
  const own = read('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', s.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT);
  const protocol = read('OTEL_EXPORTER_OTLP_PROTOCOL', s.OTEL_EXPORTER_OTLP_PROTOCOL);
  const ownProtocol = read('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', s.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL);
  const exporter = read('OTEL_TRACES_EXPORTER', s.OTEL_TRACES_EXPORTER);
  const disabled = read('OTEL_SDK_DISABLED', s.OTEL_SDK_DISABLED);
  const config = {
    endpoint: own ?? base,
    protocol: ownProtocol ?? protocol,
    serviceName: read('OTEL_SERVICE_NAME', s.OTEL_SERVICE_NAME),
    sampler: read('OTEL_TRACES_SAMPLER', s.OTEL_TRACES_SAMPLER),
    ratio: read('OTEL_TRACES_SAMPLER_ARG', s.OTEL_TRACES_SAMPLER_ARG),
  };
  const isOn = exporter === 'otlp' || (exporter === null && config.endpoint !== null);
  return isOn && !disabled ? Object.freeze(config) : null;
}
