import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { type JetStreamClient, type JetStreamManager, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect, headers, type NatsConnection, nanos } from '@nats-io/transport-node';
import { expect } from 'vitest';
import { type Ingest, startIngest } from '../../src/ingest/ingest.ts';
import type { IngestLog } from '../../src/ingest/types.ts';
import type { NatsConfig } from '../../src/nats-config.ts';
import { type ControlPlane, quiet } from './control-plane.ts';
import { type NatsServer, type NatsServerOptions, startNatsServer } from './nats-server.ts';

/** What a process that takes messages in needs of its services. */
interface Ingesting {
  services: Pick<ControlPlane['services'], 'db' | 'intake'>;
}

/** The same, told to the test event by event. */
export function hearing(plane: Ingesting, onReceived: (event: { topic: string }) => void): Ingesting {
  const { db, intake } = plane.services;
  const receiveEvent: typeof intake.receiveEvent = (input) => {
    onReceived(input);
    return intake.receiveEvent(input);
  };
  return { services: { db, intake: { ...intake, receiveEvent } } };
}

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

  /** As `runplane nats setup` makes it, but for its age. */
  async stream(name = 'PIPELINE', maxAgeSeconds = 0): Promise<void> {
    await this.jsm.streams.add({
      name,
      subjects: [`${name.toLowerCase()}.>`],
      max_age: nanos(maxAgeSeconds * 1000),
    });
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

  ingest(plane: Ingesting, more: Partial<NatsConfig> = {}, log: Partial<IngestLog> = {}): Ingest {
    const { db, intake } = plane.services;
    const ingest = startIngest(this.config(more), { db, intake, log: { ...quiet, ...log } });
    this.#ingests.add(ingest);
    return ingest;
  }

  /** The server is there again, for the producer too. */
  async restart(): Promise<void> {
    await this.server.start();
    const answers = () =>
      this.jsm.getAccountInfo().then(
        () => true,
        () => false,
      );
    await expect.poll(answers, { timeout: 20_000 }).toBe(true);
  }

  /** Stored by the broker when it settles; answers the sequence. */
  async publish(subject: string, data: unknown, header: Record<string, string> = {}): Promise<number> {
    const hdrs = headers();
    for (const [name, value] of Object.entries(header)) hdrs.set(name, value);
    const bytes = data instanceof Uint8Array || typeof data === 'string' ? data : JSON.stringify(data);
    const { seq } = await this.js.publish(subject, bytes, { headers: hdrs });
    return seq;
  }

  /** As a producer that writes headers which the client of ours refuses to write, on the wire itself. */
  async publishRaw(subject: string, header: string, body: string): Promise<void> {
    const { last_seq } = (await this.jsm.streams.info('PIPELINE')).state;
    const socket = connectTcp(this.server.port, '127.0.0.1');
    await once(socket, 'data');
    const head = Buffer.from(`NATS/1.0\r\n${header}\r\n\r\n`);
    const bytes = Buffer.from(body);
    socket.write('CONNECT {"verbose":false,"headers":true}\r\n');
    socket.write(`HPUB ${subject} ${head.length} ${head.length + bytes.length}\r\n`);
    socket.write(Buffer.concat([head, bytes, Buffer.from('\r\n')]));
    const last = async () => (await this.jsm.streams.info('PIPELINE')).state.last_seq;
    await expect.poll(last, { timeout: 20_000 }).toBe(last_seq + 1);
    socket.destroy();
  }

  /** Until nothing waits for an acknowledgement. */
  async allAcknowledged(stream = 'PIPELINE', timeout = 20_000): Promise<void> {
    const waiting = async (): Promise<number> => {
      const { num_pending, num_ack_pending } = await this.jsm.consumers.info(stream, 'runplane');
      return num_pending + num_ack_pending;
    };
    await expect.poll(waiting, { timeout, interval: timeout > 60_000 ? 1000 : 50 }).toBe(0);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#ingests].map((ingest) => ingest.stop()));
    await this.nc.close();
    await this.server.remove();
  }
}

export interface IngestedEvent {
  id: string;
  topic: string;
  key: string;
  correlation: string;
  payload: unknown;
  source: string;
  rejection: { code: string; message: string; bytes: number } | null;
  raw: Buffer | null;
  runs: number;
}

/** In the order in which they came in. */
export const eventsOf = (plane: ControlPlane): Promise<IngestedEvent[]> =>
  plane.rows<IngestedEvent>(
    `select id, topic, idempotency_key as key, correlation_id as correlation, payload, source, rejection, raw,
            (select count(*) from runplane.runs r where r.event_id = e.id)::int as runs from runplane.events e order by received_at, id`,
  );

export interface RecordedIncident {
  kind: string;
  from: number | null;
  to: number | null;
  eventId: string | null;
  isOver: boolean;
}

/** Oldest first. */
export const incidentsOf = (plane: ControlPlane): Promise<RecordedIncident[]> =>
  plane.rows<RecordedIncident>(
    `select kind, from_sequence as from, to_sequence as to, event_id as "eventId", resolved_at is not null as "isOver"
       from runplane.ingest_incidents order by id`,
  );
