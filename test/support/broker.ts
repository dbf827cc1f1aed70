import { type JetStreamClient, type JetStreamManager, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect, headers, type NatsConnection, nanos } from '@nats-io/transport-node';
import { type Ingest, startIngest } from '../../src/ingest/ingest.ts';
import type { IngestLog } from '../../src/ingest/types.ts';
import type { NatsConfig } from '../../src/nats-config.ts';
import { type ControlPlane, quiet } from './control-plane.ts';
import { type NatsServer, type NatsServerOptions, startNatsServer } from './nats-server.ts';

/** A broker with a stream, a producer's connection to it, and processes that take its messages in. */
export class Broker {
  readonly server: NatsServer;
  readonly nc: NatsConnection;
  readonly js: JetStreamClient;
  readonly jsm: JetStreamManager;
  readonly #ingests = new Set<Ingest>();

  private constructor(server: NatsServer, nc: NatsConnection, jsm: JetStreamManager) {
    this.server = server;
    this.nc = nc;
    this.js = jetstream(nc);
    this.jsm = jsm;
  }

  static async start(options: NatsServerOptions = {}): Promise<Broker> {
    const server = await startNatsServer(options);
    const nc = await connect({
      servers: server.url,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 50,
      reconnectJitter: 0,
    });
    return new Broker(server, nc, await jetstreamManager(nc));
  }

  async stream(name = 'PIPELINE', maxAgeSeconds = 0): Promise<void> {
    await this.jsm.streams.add({ name, subjects: ['pipeline.>'], max_age: nanos(maxAgeSeconds * 1000) });
  }

  config(more: Partial<NatsConfig> = {}): NatsConfig {
    return {
      servers: [this.server.url],
      user: null,
      password: null,
      token: null,
      nkey: null,
      credentials: null,
      tls: { ca: null, cert: null, key: null },
      streams: ['PIPELINE'],
      consumer: 'runplane',
      ackWaitSeconds: 2,
      maxDeliver: 10,
      batch: 100,
      ...more,
    };
  }

  ingest(plane: ControlPlane, more: Partial<NatsConfig> = {}, log: Partial<IngestLog> = {}): Ingest {
    const { db, intake } = plane.services;
    const ingest = startIngest(this.config(more), { db, intake, log: { ...quiet, ...log } });
    this.#ingests.add(ingest);
    return ingest;
  }

  /** Stored by the broker when it settles; answers the sequence. */
  async publish(subject: string, data: unknown, header: Record<string, string> = {}): Promise<number> {
    const hdrs = headers();
    for (const [name, value] of Object.entries(header)) hdrs.set(name, value);
    const bytes = data instanceof Uint8Array || typeof data === 'string' ? data : JSON.stringify(data);
    const { seq } = await this.js.publish(subject, bytes, { headers: hdrs });
    return seq;
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#ingests].map((ingest) => ingest.stop()));
    await this.nc.close();
    await this.server.remove();
  }
}
