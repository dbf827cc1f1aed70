import type { GraphQLSchema } from 'graphql';
import { builder } from './builder.ts';
import './agent.ts';
import './asset.ts';
import './attempt.ts';
import './audit.ts';
import './changes.ts';
import './claim.ts';
import './dead-letter.ts';
import './event.ts';
import './job.ts';
import './launch.ts';
import './materialization.ts';
import './node.ts';
import './pool.ts';
import './publish.ts';
import './queue.ts';
import './report.ts';
import './route.ts';
import './run.ts';
import './scalars.ts';
import './server.ts';
import './task.ts';
import './throttle.ts';
import './trace.ts';
import './worker.ts';

/** The schema that clients see. Its services come with the context of each request. */
export const buildSchema = (): GraphQLSchema => builder.toSchema();
