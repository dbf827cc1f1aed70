import type { CodegenConfig } from '@graphql-codegen/cli';

const config: CodegenConfig = {
  schema: '../../schema/schema.graphql',
  documents: '../operations/*.graphql',
  generates: {
    'src/gql/': {
      preset: 'client',
      presetConfig: { fragmentMasking: false },
      config: {
        documentMode: 'string',
        useTypeImports: true,
        enumsAsTypes: true,
        strictScalars: true,
        scalars: {
          Cursor: 'string',
          DateTime: 'string',
          Decimal: 'string',
          JSON: 'unknown',
          SafeInt: 'number',
        },
      },
    },
  },
};
export default config;
