import { describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { faultsOf } from '../support/config-faults.ts';

describe('settings of telemetry', () => {
  const endpoint = 'http://collector:4318';
  const on = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint };

  it('is off unless an endpoint or the exporter is named, and when it is disabled', () => {
    expect(readConfig({ OTEL_SERVICE_NAME: 'x', OTEL_TRACES_SAMPLER: 'always_on' }).telemetry).toBeNull();
    for (const off of [{ OTEL_SDK_DISABLED: 'TRUE' }, { OTEL_TRACES_EXPORTER: 'none' }])
      expect(readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...off }).telemetry).toBeNull();
  });

  it('follows the standard variables, those of traces first', () => {
    expect(readConfig({ OTEL_TRACES_EXPORTER: 'otlp' }).telemetry).toEqual({
      endpoint: null,
      protocol: 'http/protobuf',
      serviceName: 'runplane',
      sampler: 'parentbased_always_on',
      ratio: 1,
    });
    expect(
      readConfig({
        OTEL_EXPORTER_OTLP_ENDPOINT: 'grpc://collector',
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://traces/v1/traces',
        OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
        OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
        OTEL_SERVICE_NAME: 'plane',
        OTEL_TRACES_SAMPLER: 'traceidratio',
        OTEL_TRACES_SAMPLER_ARG: '0.25',
      }).telemetry,
    ).toEqual({
      endpoint: 'https://traces/v1/traces',
      protocol: 'http/json',
      serviceName: 'plane',
      sampler: 'traceidratio',
      ratio: 0.25,
    });
  });

  it.each([
    ['OTEL_EXPORTER_OTLP_ENDPOINT is wrong', { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317' }],
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is wrong', { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'collector' }],
    ['OTEL_EXPORTER_OTLP_PROTOCOL is "grpc"', { ...on, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }],
    ['OTEL_TRACES_EXPORTER is "zipkin"', { ...on, OTEL_TRACES_EXPORTER: 'zipkin' }],
    ['OTEL_TRACES_EXPORTER is "otlp,console"', { OTEL_TRACES_EXPORTER: 'otlp,console' }],
    ['OTEL_TRACES_SAMPLER is "sometimes"', { ...on, OTEL_TRACES_SAMPLER: 'sometimes' }],
    ['OTEL_TRACES_SAMPLER_ARG is "2"', { ...on, OTEL_TRACES_SAMPLER_ARG: '2' }],
    ['OTEL_SDK_DISABLED is "yes"', { ...on, OTEL_SDK_DISABLED: 'yes' }],
  ])('refuses what is wrong: %s', (fault, env) => {
    expect(faultsOf(env)).toEqual([expect.stringContaining(fault)]);
  });

  it('minds nothing that other programs are told while there are no spans', () => {
    const foreign = {
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'grpc',
      OTEL_TRACES_SAMPLER: 'xray',
      OTEL_TRACES_SAMPLER_ARG: 'endpoint=http://localhost:2000',
    };
    const off = [
      { OTEL_SDK_DISABLED: 'no' },
      { OTEL_TRACES_EXPORTER: 'zipkin' },
      { ...on, OTEL_TRACES_EXPORTER: 'none' },
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317', OTEL_SDK_DISABLED: 'true' },
    ];
    for (const env of off) expect(readConfig({ ...foreign, ...env }).telemetry).toBeNull();
  });
});
