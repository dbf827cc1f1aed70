import { randomInt, randomUUID } from 'node:crypto';
import { newUuid, toPublicId, toPublicLogId } from '../../src/domain/ids.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { forgetAudit } from '../support/forget-audit.ts';

/** How to ask for a list of the schema, and how rows of it come and go. */
export interface ConnectionCase {
  /** Around the field: from the query type to the type that has it. */
  within: (field: string) => string;
  /** Adds a row anywhere in the order of the list; its public id, and how it goes again. */
  add: () => Promise<Row>;
  /** Another filter or order, as arguments of the field; null: it has none. */
  other: string | null;
}
export interface Row {
  id: string;
  remove: () => Promise<void>;
}

const text = 'text';
const correlationId = 'trace';

/** A database with at least one row of everything that is listed. */
async function prepare(): Promise<ControlPlane> {
  const plane = await ControlPlane.start();
  const { configuration, intake } = plane.services;
  await configuration.saveThrottle({ name: 't' }, actor);
  await plane.agent('a');
  await plane.job('one', [
    { name: 'first', agent: 'a', assetKey: text },
    { name: 'second', agent: 'a', dependsOn: ['first'], readsAssetKeys: [text], assetKey: 'vectors' },
  ]);
  await configuration.saveRoute({ name: 'r', topic: 'docs.*', job: 'one' }, actor);
  await intake.publishEvents([{ topic: 'docs.new', payload: {}, correlationId }]);
  const produced: Record<string, string> = { first: text, second: 'vectors' };
  for (const spawn of [[{ step: 'child', agent: 'a' }], null, null])
    for (const task of await plane.claim(['a'])) {
      const assetKey = produced[task.step];
      const materializations = assetKey === undefined ? null : [{ assetKey }];
      await plane.report(task, { status: 'COMPLETED', output: {}, spawn, materializations });
    }
  await plane.launch('one');
  for (const task of await plane.claim(['a']))
    await plane.report(task, { status: 'FAILED', error: { code: 'E', message: 'no', kind: 'PERMANENT' } });
  await plane.rows(
    `with s as (insert into runplane.ingest_streams (stream, consumer, ack_wait_seconds, max_deliver) values ('S', 'c', 30, 10))
     insert into runplane.ingest_incidents (id, stream, consumer, kind, detail) values ($1, 'S', 'c', 'GAP', 'lost')`,
    [newUuid()],
  );
  await plane.rows(
    `insert into runplane.api_tokens (id, name, secret_hash, scopes) values ($1, 'token', '\\x00', '{READ}')`,
    [newUuid()],
  );
  return plane;
}

export async function prepareConnections(): Promise<{
  plane: ControlPlane;
  cases: Record<string, ConnectionCase>;
}> {
  const plane = await prepare();
  const one = async (sql: string): Promise<string> => {
    const [row] = await plane.rows<{ id: string }>(sql);
    if (!row) throw new Error(`No row: ${sql}`);
    return row.id;
  };
  const jobId = await one(`select id from runplane.jobs where name = 'one'`);
  const eventId = await one('select id from runplane.events');
  const runId = await one('select id from runplane.runs where event_id is not null');
  const failed = await one('select task_id as id from runplane.dead_letters');
  const ofStep = (step: string) =>
    one(`select id from runplane.tasks where run_id = '${runId}' and step = '${step}'`);
  const first = await ofStep('first');
  const second = await ofStep('second');
  const child = await ofStep('child');
  const attemptOf = (task: string) => one(`select id from runplane.attempts where task_id = '${task}'`);
  const attempt = await attemptOf(first);
  const productOf = (task: string) =>
    one(`select id from runplane.materializations where task_id = '${task}'`);
  const made = await productOf(first);
  const madeOf = await productOf(second);
  const assetId = await one(`select id from runplane.assets where key = '${text}'`);

  /** Inserts a row that is like another one but for these columns. */
  const like = (table: string, base: string, columns: object) =>
    plane.rows(
      `insert into runplane.${table} overriding system value
       select (jsonb_populate_record(x, $1::jsonb)).* from runplane.${table} x where ${base}`,
      [JSON.stringify(columns)],
    );
  const add =
    (
      prefix: Parameters<typeof toPublicId>[0],
      table: string,
      base: string,
      columns: (id: string) => object = () => ({}),
      more: (id: string) => Promise<unknown> = async () => {},
    ) =>
    async (): Promise<Row> => {
      const id = randomUUID();
      await like(table, base, { id, ...columns(id) });
      await more(id);
      const remove = async () => {
        if (table === 'jobs') await plane.rows('delete from runplane.job_versions where job_id = $1', [id]);
        if (table === 'audit_entries') await forgetAudit(plane.database.db, id);
        else await plane.rows(`delete from runplane.${table} where id = $1`, [id]);
      };
      return { id: toPublicId(prefix, id), remove };
    };
  const addEvent = async (): Promise<Row> => {
    const sequence = randomInt(1, 1_000_000_000);
    await plane.rows(
      `insert into runplane.attempt_events (run_id, task_id, attempt_id, sequence, type, at, bytes)
       values ($1, $2, $3, $4, 'log', runplane.clock(), 1)`,
      [runId, first, attempt, sequence],
    );
    const [row] = await plane.rows<{ number: number }>(
      'select id as number from runplane.attempt_events where sequence = $1',
      [sequence],
    );
    const remove = async () =>
      void (await plane.rows('delete from runplane.attempt_events where sequence = $1', [sequence]));
    return { id: toPublicLogId('aev', row?.number ?? 0), remove };
  };
  const addRecord = async (): Promise<Row> => {
    const table = 'knowledge_chat_pairs';
    const [row] = await plane.rows<{ id: number }>(
      `insert into runplane.${table} (pair_id, correlation_id, pipeline_id, created_at) values ($1, $2, 'p', $3) returning id`,
      [randomUUID(), correlationId, new Date(Date.UTC(2026, 0) + randomInt(5))],
    );
    const remove = async () =>
      void (await plane.rows(`delete from runplane.${table} where id = $1`, [row?.id]));
    return { id: `${table}:${row?.id}`, remove };
  };
  const is = (id: string) => `x.id = '${id}'`;
  const some = (table: string) => `x.id = (select id from runplane.${table} limit 1)`;
  const named = (id: string) => ({ name: id });
  const numbered = () => ({ number: randomInt(1000, 1_000_000_000) });

  const root = (field: string) => `{ ${field} }`;
  const node = (type: string, id: string) => (field: string) =>
    `{ node(id: "${id}") { ... on ${type} { ${field} } } }`;
  const ofRun = node('Run', toPublicId('run', runId));
  const ofTask = (id: string) => node('Task', toPublicId('task', id));
  const trace = (field: string) => `{ trace(correlationId: "${correlationId}") { ${field} } }`;

  const addRun = add('run', 'runs', is(runId), (id) => ({ route: id }));
  const addTask = add('task', 'tasks', is(first));
  const addAttempt = add('att', 'attempts', is(attempt), numbered);
  const addProduct = add('mat', 'materializations', is(made), (id) => ({ attempt_id: id }));
  const addConfigured = (prefix: 'agent' | 'thr' | 'route', table: string) =>
    add(prefix, table, some(table), named);

  const cases: Record<string, ConnectionCase> = {
    'Query.runs': { within: root, add: addRun, other: 'filter: { jobs: ["two"] }' },
    'Query.tasks': { within: root, add: addTask, other: 'orderBy: CREATED_ASC' },
    'Query.events': {
      within: root,
      add: add('evt', 'events', is(eventId)),
      other: 'filter: { topics: ["x"] }',
    },
    'Query.jobs': {
      within: root,
      add: add('job', 'jobs', is(jobId), named, (id) =>
        like('job_versions', `x.job_id = '${jobId}'`, { job_id: id }),
      ),
      other: null,
    },
    'Query.agents': { within: root, add: addConfigured('agent', 'agents'), other: null },
    'Query.throttles': { within: root, add: addConfigured('thr', 'throttles'), other: null },
    'Query.routes': { within: root, add: addConfigured('route', 'routes'), other: 'topic: "docs.new"' },
    'Query.workers': {
      within: root,
      add: add('wrk', 'workers', some('workers'), (id) => ({ worker_key: id })),
      other: 'live: null',
    },
    'Query.deadLetters': {
      within: root,
      add: add(
        'dlq',
        'dead_letters',
        `x.task_id = '${failed}'`,
        (id) => ({ task_id: id }),
        (id) => like('tasks', is(failed), { id }),
      ),
      other: 'filter: { scopes: ["tenant"] }',
    },
    'Query.assets': {
      within: root,
      add: add('asset', 'assets', is(assetId), (id) => ({ key: id })),
      other: null,
    },
    'Query.auditLog': {
      within: root,
      add: add('audit', 'audit_entries', some('audit_entries')),
      other: 'filter: { actors: ["x"] }',
    },
    'Query.apiTokens': { within: root, add: add('tok', 'api_tokens', some('api_tokens')), other: null },
    'IngestStream.incidents': {
      within: (field) => `{ ingestStreams { ${field} } }`,
      add: add('inc', 'ingest_incidents', some('ingest_incidents')),
      other: null,
    },
    'Run.tasks': { within: ofRun, add: addTask, other: 'filter: { steps: ["first"] }' },
    'Event.runs': { within: node('Event', toPublicId('evt', eventId)), add: addRun, other: null },
    'Job.runs': { within: node('Job', toPublicId('job', jobId)), add: addRun, other: null },
    'Attempt.events': {
      within: node('Attempt', toPublicId('att', attempt)),
      add: addEvent,
      other: null,
    },
    'Task.attempts': { within: ofTask(first), add: addAttempt, other: null },
    'Task.dependencies': { within: ofTask(second), add: addTask, other: null },
    'Task.children': { within: ofTask(first), add: add('task', 'tasks', is(child)), other: null },
    'Task.materializations': { within: ofTask(first), add: addProduct, other: null },
    'Asset.materializations': {
      within: node('Asset', toPublicId('asset', assetId)),
      add: addProduct,
      other: 'partition: "x"',
    },
    'Materialization.inputs': {
      within: node('Materialization', toPublicId('mat', madeOf)),
      add: add(
        'mat',
        'materializations',
        is(made),
        (id) => ({ attempt_id: id }),
        (id) => plane.rows('insert into runplane.materialization_inputs values ($1, $2)', [madeOf, id]),
      ),
      other: null,
    },
    'Trace.events': { within: trace, add: add('evt', 'events', is(eventId)), other: null },
    'Trace.runs': { within: trace, add: addRun, other: null },
    'Trace.tasks': { within: trace, add: addTask, other: null },
    'Trace.attempts': { within: trace, add: addAttempt, other: null },
    'Trace.knowledgeRecords': { within: trace, add: addRecord, other: null },
    'Trace.materializations': { within: trace, add: addProduct, other: null },
  };
  return { plane, cases };
}
