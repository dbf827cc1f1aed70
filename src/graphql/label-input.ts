import { builder } from './builder.ts';

export const LabelInput = builder.inputType('LabelInput', {
  description: 'A label; a key is given once.',
  fields: (t) => ({
    key: t.string({ required: true, description: '1 to 63 bytes, kept as NFC.' }),
    value: t.string({ required: true, description: 'At most 200 bytes, kept as NFC.' }),
  }),
});
