#!/usr/bin/env node
import { register } from 'tsx/esm/api';

// The sources are TypeScript and translated as they are loaded, whatever tsconfig.json is in the folder of the caller.
register({ tsconfig: false });
await import('../src/cli/runplane.ts');
