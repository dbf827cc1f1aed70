import { choice, type Setting, type SettingWithDefault } from './setting.ts';

const endpoint = (meaning: string): Setting<string> => ({
  default: null,
  values: 'an http or https URL',
  meaning,
  parse: (text) => (/^https?:\/\//.test(text) && URL.canParse(text) ? text : undefined),
  // It may name a user and a password.
  secret: true,
});

const protocols = ['http/protobuf', 'http/json'] as const;
const samplers = [
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
  'always_on',
  'always_off',
  'traceidratio',
] as const;

export type OtlpProtocol = (typeof protocols)[number];
export type Sampler = (typeof samplers)[number];

/** Standard variables of OpenTelemetry that decide whether there are spans, and where they go. docs/telemetry.md names more. */
export const telemetrySettings = {
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint(
    'An OTLP receiver that spans are sent to (docs/telemetry.md), without the path v1/traces; when absent, there are none.',
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: endpoint('The same, with the path; wins over the other.'),
  OTEL_EXPORTER_OTLP_PROTOCOL: choice(protocols, 'http/protobuf', 'How spans are written down for it.'),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: {
    default: null,
    values: `one of ${protocols.join(', ')}`,
    meaning: 'The same; wins over the other.',
    parse: (text) => protocols.find((known) => known === text),
  } satisfies Setting<OtlpProtocol>,
  OTEL_TRACES_EXPORTER: {
    default: null,
    values: 'one of otlp, none',
    meaning: 'otlp sends spans also without an endpoint, to http://localhost:4318; none sends nothing.',
    parse: (text) => (['otlp', 'none'] as const).find((known) => known === text),
  } satisfies Setting<'otlp' | 'none'>,
  OTEL_SDK_DISABLED: {
    default: 'false',
    values: 'true or false',
    meaning: 'true: there are no spans, whatever else is set.',
    parse: (text) => ({ true: true, false: false })[text.toLowerCase()],
  } satisfies SettingWithDefault<boolean>,
  OTEL_SERVICE_NAME: {
    default: 'runplane',
    values: 'a text',
    meaning: 'What the service is called in traces.',
    parse: (text) => text,
  } satisfies SettingWithDefault<string>,
  OTEL_TRACES_SAMPLER: {
    default: 'parentbased_always_on',
    values: 'a sampler such as parentbased_traceidratio',
    meaning: 'Which traces are recorded: always_on, always_off or traceidratio, each also as parentbased_….',
    parse: (text) => samplers.find((known) => known === text),
  } satisfies SettingWithDefault<Sampler>,
  OTEL_TRACES_SAMPLER_ARG: {
    default: '1',
    values: 'a number from 0 to 1',
    meaning: 'Share of the traces that are recorded, of the samplers with a ratio.',
    parse: (text) => {
      const ratio = Number(text);
      return ratio >= 0 && ratio <= 1 ? ratio : undefined;
    },
  } satisfies SettingWithDefault<number>,
} as const;
