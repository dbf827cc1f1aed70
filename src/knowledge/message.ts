import { HandlerError, type InlineTask } from '../dispatch/handlers.ts';
import { checkJson, isJsonObject, type Json, type JsonObject } from '../domain/json.ts';
import { InvalidInputError } from '../domain/problems.ts';
import { parseName, parseOptionalName } from '../domain/text.ts';
import { compileConfigSchema } from '../intake/validate-config.ts';

/** A message with its defaults filled in. */
export interface Message {
  /** The fields as they came. */
  fields: JsonObject;
  pipelineId: string;
  correlationId: string;
  /** What the producer names the message by; null: it has no name. */
  key: string | null;
  /** The key, else the id of the event that brought the message, else that of the run. */
  identity: string;
  model: string | null;
  prompt: string | null;
  response: string | null;
  tokens: { prompt: number | null; completion: number | null; total: number | null };
  /** Decimal text. */
  cost: string | null;
  requestedAt: Date | null;
  /** Parsed when it is the text of a JSON value; undefined when the message has none. */
  payload: Json | undefined;
}

/** The id under which a message's tokens are booked: a response of a provider counts once, however many tasks report it. */
export const originOf = (task: InlineTask): string => task.eventId ?? task.runId;

/** Content that no retry can mend. */
export const refuse = (message: string): HandlerError =>
  new HandlerError('INVALID_MESSAGE', message, { kind: 'PERMANENT' });

/** Validates what a task was given, with all faults in one error. */
export function createReader<T>(
  schema: Json,
  read: (value: JsonObject, task: InlineTask) => T,
): (task: InlineTask) => T {
  const validate = compileConfigSchema(schema);
  return (task) => {
    if (!isJsonObject(task.input)) throw refuse('The input is no JSON object.');
    const errors = validate(task.input);
    if (errors.length > 0) throw refuse(errors.map((error) => error.message).join(' '));
    try {
      return read(task.input, task);
    } catch (error) {
      if (error instanceof InvalidInputError) throw refuse(error.message);
      throw error;
    }
  };
}

/** Reads a message that satisfies its schema. */
export function readMessage(input: JsonObject, task: InlineTask): Message {
  const { correlation_id, idempotency_key, model, usage, requested_at, payload_json, ...rest } =
    input as JsonObject & RawMessage;
  const key = parseOptionalName(idempotency_key, 'idempotency_key');
  const payload =
    payload_json === undefined || payload_json === null ? undefined : parsePayload(payload_json);
  const prompt = usage?.prompt_tokens ?? null;
  const completion = usage?.completion_tokens ?? null;
  return {
    fields: input,
    pipelineId: rest.pipeline_id,
    correlationId: parseName(correlation_id ?? task.correlationId, 'correlation_id'),
    key,
    identity: key ?? originOf(task),
    model: parseOptionalName(model, 'model'),
    prompt: rest.prompt ?? null,
    response: rest.response ?? null,
    tokens: {
      prompt,
      completion,
      total:
        usage?.total_tokens ??
        (prompt === null && completion === null ? null : (prompt ?? 0) + (completion ?? 0)),
    },
    cost: usage?.cost ?? null,
    requestedAt: typeof requested_at === 'number' ? new Date(requested_at) : null,
    payload,
  };
}

/** The fields of a message that have no column of their own, with its payload as it is stored. */
export function without(message: Message, columns: readonly string[]): JsonObject {
  const rest = Object.fromEntries(
    Object.entries(message.fields).filter(([field]) => !columns.includes(field)),
  );
  return message.payload === undefined ? rest : { ...rest, payload_json: message.payload };
}

/** The fields that the schema of every message checks. */
interface RawMessage {
  pipeline_id: string;
  correlation_id?: string | null;
  idempotency_key?: string | null;
  model?: string | null;
  prompt?: string | null;
  response?: string | null;
  usage?: {
    prompt_tokens?: number | null;
    completion_tokens?: number | null;
    total_tokens?: number | null;
    cost?: string | null;
  } | null;
  requested_at?: number | null;
  payload_json?: Json;
}

function parsePayload(payload: Json): Json {
  if (typeof payload !== 'string') return payload;
  let parsed: unknown;
  try {
    parsed = JSON.parse(payload);
  } catch {
    return payload;
  }
  // The text was checked at the door, what it stands for was not: "\u0000" becomes NUL only now.
  return checkJson(parsed, 'payload_json').value;
}
