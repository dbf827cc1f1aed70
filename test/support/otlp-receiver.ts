import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

export interface ReceivedSpan {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  links: string[];
  kind: number;
  /** Milliseconds since 1970. */
  startedAt: number;
  endedAt: number;
  attributes: Record<string, unknown>;
  status: { code?: number; message?: string };
  resource: Record<string, unknown>;
}

type Value = Record<string, unknown> & { arrayValue?: { values: Value[] } };
interface KeyValue {
  key: string;
  value: Value;
}
interface WireSpan {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  links?: { traceId: string; spanId: string }[];
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: KeyValue[];
  status: { code?: number; message?: string };
}
interface Export {
  resourceSpans: { resource: { attributes: KeyValue[] }; scopeSpans: { spans: WireSpan[] }[] }[];
}

export interface OtlpReceiver {
  endpoint: string;
  /** In the order in which they came, of bodies that are JSON. */
  spans: ReceivedSpan[];
  requests: { path: string; type: string; headers: IncomingMessage['headers']; body: Buffer }[];
  close(): Promise<void>;
}

/** Takes in what an OTLP exporter sends over HTTP. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const requests: OtlpReceiver['requests'] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const sent = Buffer.concat(chunks);
      const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent;
      const type = request.headers['content-type'] ?? '';
      requests.push({ path: request.url ?? '', type, headers: request.headers, body });
      if (type === 'application/json') spans.push(...spansOf(JSON.parse(body.toString()) as Export));
      response.writeHead(200, { 'content-type': type });
      response.end(type === 'application/json' ? '{}' : '');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const spansOf = ({ resourceSpans }: Export): ReceivedSpan[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        name: span.name,
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId,
        links: (span.links ?? []).map((link) => `${link.traceId}-${link.spanId}`),
        kind: span.kind,
        startedAt: Number(BigInt(span.startTimeUnixNano) / 1000n) / 1000,
        endedAt: Number(BigInt(span.endTimeUnixNano) / 1000n) / 1000,
        attributes: objectOf(span.attributes),
        status: span.status,
        resource: objectOf(resource.attributes),
      })),
    ),
  );

const objectOf = (pairs: KeyValue[]): Record<string, unknown> =>
  Object.fromEntries(pairs.map(({ key, value }) => [key, plain(value)]));

function plain(value: Value): unknown {
  if (value.arrayValue) return value.arrayValue.values.map(plain);
  const [[kind, only] = []] = Object.entries(value);
  return kind === 'intValue' ? Number(only) : only;
}
