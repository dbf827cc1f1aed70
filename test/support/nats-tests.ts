import { beforeEach } from 'vitest';
import type { Ingest } from '../../src/ingest/ingest.ts';
import type { IngestLog } from '../../src/ingest/types.ts';
import type { NatsConfig } from '../../src/nats-config.ts';
import { Broker, eventsOf, incidentsOf } from './broker.ts';
import { ControlPlane } from './control-plane.ts';
import type { NatsServerOptions } from './nats-server.ts';

interface NatsTestsOptions {
  server?: NatsServerOptions;
  /** Default: the stream PIPELINE. */
  streams?: readonly string[];
  /** Before messages can come in. */
  prepare?: (plane: ControlPlane) => Promise<void>;
}

/** For stories of messages, each with a broker and a control plane of its own. */
export function natsTests({ server, streams = ['PIPELINE'], prepare }: NatsTestsOptions = {}) {
  let plane: ControlPlane;
  let broker: Broker;
  beforeEach(async () => {
    plane = await ControlPlane.start();
    await prepare?.(plane);
    broker = await Broker.start(server);
    for (const stream of streams) await broker.stream(stream);
    return async () => {
      await broker.stop();
      await plane.stop();
    };
  });
  return {
    /** Of the story that runs. */
    get plane() {
      return plane;
    },
    get broker() {
      return broker;
    },
    startIngest: (more?: Partial<NatsConfig>, log?: Partial<IngestLog>): Ingest =>
      broker.ingest(plane, more, log),
    publish: async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) await broker.publish('pipeline.x', { i });
    },
    allAcknowledged: (stream?: string): Promise<void> => broker.allAcknowledged(stream),
    consumer: (stream = 'PIPELINE') => broker.jsm.consumers.info(stream, 'runplane'),
    events: () => eventsOf(plane),
    incidents: () => incidentsOf(plane),
  };
}

/** What happens in the story within a poll of the broker, or two. */
export const soon = { timeout: 25_000 };
