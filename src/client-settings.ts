import type { Setting, SettingWithDefault } from './setting.ts';

/** Of commands that ask a server. */
export const clientSettings = {
  RUNPLANE_URL: {
    default: 'http://127.0.0.1:4000',
    values: 'an http or https URL',
    meaning:
      'The server that commands speak to, such as runplane publish; the server itself does not use it.',
    parse: (text) => (isServerUrl(text) ? text : undefined),
  } satisfies SettingWithDefault<string>,
  RUNPLANE_TOKEN: {
    default: null,
    values: 'visible ASCII characters',
    meaning: 'The token that commands show to it.',
    parse: (text) => (/^[\x21-\x7e]+$/.test(text) ? text : undefined),
    secret: true,
  } satisfies Setting<string>,
} as const;

export const isServerUrl = (text: string): boolean =>
  URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
