import { integer, path, type Setting, type SettingWithDefault } from './setting.ts';

const secret = (meaning: string): Setting<string> => ({
  default: null,
  values: 'a text without control characters',
  meaning,
  parse: (text) => (/[\u0000-\u001f\u007f]/.test(text) ? undefined : text),
  secret: true,
});

/** Where events come in from beside GraphQL. */
export const natsSettings = {
  NATS_URL: {
    default: null,
    values: 'a comma-separated list of URLs such as tls://user:pass@host:4222',
    meaning:
      'NATS servers of the streams that events are taken in from (docs/nats.md); when absent, events come by GraphQL alone.',
    parse: parseUrls,
    secret: true,
  } satisfies Setting<string[]>,
  NATS_USER: secret('User at NATS, unless the URL names one.'),
  NATS_PASSWORD: secret('Password of NATS_USER.'),
  NATS_TOKEN: secret('Token for NATS, instead of a user.'),
  NATS_NKEY: {
    default: null,
    values: "the seed of a user's nkey (SU…)",
    meaning: 'Seed of an nkey for NATS, instead of a user.',
    parse: (text) => (/^SU[A-Z2-7]{56}$/.test(text) ? text : undefined),
    secret: true,
  } satisfies Setting<string>,
  NATS_CREDENTIALS: path(
    'Credentials file (.creds) for NATS, instead of a user; read anew at each connection.',
  ),
  NATS_TLS_CA: path("File (PEM) of the authorities that vouch for the NATS server's certificate."),
  NATS_TLS_CERT: path('File (PEM) of the certificate to show to the NATS server.'),
  NATS_TLS_KEY: path('File (PEM) of the key of NATS_TLS_CERT.'),
  NATS_STREAMS: {
    default: 'PIPELINE',
    values: 'a comma-separated list of names of streams',
    meaning: 'JetStream streams that events are taken in from.',
    parse: (text) => {
      const names = text.split(',').map((name) => name.trim());
      return names.every(isName) ? [...new Set(names)] : undefined;
    },
  } satisfies SettingWithDefault<string[]>,
  NATS_CONSUMER: {
    default: 'runplane',
    values: 'a name of a consumer',
    meaning: 'Durable consumer of each stream: one for all processes of an installation, and for no other.',
    parse: (text) => (isName(text) ? text : undefined),
  } satisfies SettingWithDefault<string>,
  NATS_ACK_WAIT_SECONDS: integer(
    2,
    3600,
    30,
    'Seconds after which NATS delivers a message again that was not acknowledged.',
  ),
  NATS_MAX_DELIVER: integer(
    2,
    1000,
    10,
    'How often NATS delivers a message at most; after that it is read by its number.',
  ),
  NATS_BATCH: integer(1, 1000, 100, 'Messages of a stream that a process works on at once, at most.'),
} as const;

/** Names are parts of subjects, and of the keys of messages. */
function isName(text: string): boolean {
  return /^[^\s.*>\\/\u0000-\u001f\u007f]+$/.test(text) && Buffer.byteLength(text) <= 100;
}

function parseUrls(text: string): string[] | undefined {
  const urls = text.split(',').map((url) => url.trim());
  return urls.every((url) => /^(nats|tls):\/\/[^/]/.test(url) && URL.canParse(url)) ? urls : undefined;
}
