import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { adminToken, run, startServerWithTokens } from '../support/clients.ts';
import { startUnreliableProxy } from '../support/unreliable-proxy.ts';

const clients = [
  {
    client: 'typescript-client',
    install: ['npm ci --no-audit --no-fund', 'npm run generate'],
    check: 'npm run check',
    start: 'npm -s start',
    // Either is understood.
    as: (url: string) => url,
  },
  {
    client: 'python-client',
    install: [
      'python3 -m venv .venv',
      '.venv/bin/pip install --disable-pip-version-check -r requirements.txt',
      '.venv/bin/ariadne-codegen',
    ],
    check: '.venv/bin/ruff format --check && .venv/bin/ruff check && .venv/bin/mypy .',
    start: '.venv/bin/python main.py',
    as: (url: string) => new URL(url).origin,
  },
];

describe.each(clients)('$client', ({ client, install, check, start, as }) => {
  const cwd = new URL(`../../examples/${client}/`, import.meta.url);
  const inFolder = (command: string, env?: NodeJS.ProcessEnv) => run('bash', ['-c', command], { cwd, env });

  let server: Awaited<ReturnType<typeof startServerWithTokens>>;
  let token: string;
  beforeAll(async () => {
    for (const command of install) await inFolder(command);
    server = await startServerWithTokens();
    const setup = await run('examples/setup.sh', [], {
      env: { RUNPLANE_URL: as(server.url), RUNPLANE_ADMIN_TOKEN: adminToken },
    });
    token = setup.trim();
  }, 900_000);
  afterAll(() => server.stop());

  test('the types of what is generated and of what is written fit together', () => inFolder(check), 120_000);

  test('launches, watches, works and operates, over a network that loses answers and cuts streams', async () => {
    const proxy = await startUnreliableProxy(server.url);
    const output = await inFolder(start, { RUNPLANE_URL: as(proxy.url), RUNPLANE_TOKEN: token });
    await proxy.stop();

    const [oneRun = '', upload = '', ending = ''] = output.split(
      /^An upload of 300 documents$|^(?=A run that)/m,
    );
    // Its two streams are followed at once.
    expect(oneRun.trim().split('\n').sort()).toEqual([
      '  COMPLETED, 912 tokens, 0.0003792 USD',
      '  final_answer: Runplane keeps work',
      '  summarize: ENQUEUED -> PROCESSING',
      '  summarize: PROCESSING -> COMPLETED',
      '  summarize: new -> ENQUEUED',
      '  summary: Runplane keeps work',
      '  thought: The text has 35 characters.',
      'One run',
    ]);
    const counts = [...upload.matchAll(/^ {2}(\d+) of 300 are over$/gm)].map(([, count]) => Number(count));
    expect(counts).toEqual([...new Set(counts)].sort((a, b) => a - b));
    expect(counts.at(-1)).toBe(300);
    expect(upload).toMatch(
      / {2}297 completed, 3 failed\n( {2}\d of 3 that were replayed are over\n)* {2}3 of 3 that were replayed are over\n {2}300 runs are COMPLETED\n$/,
    );
    expect(ending).toBe(
      [
        'A run that is cancelled\n  ENQUEUED\n  PROCESSING\n  CANCELLED',
        'A worker that stops\n  ENQUEUED\n  PROCESSING\n  ENQUEUED\n  CANCELLED',
        'The worker has stopped\n',
      ].join('\n'),
    );
    expect([...proxy.failed].sort()).toEqual([
      'CancelRun',
      'Claim',
      'Heartbeat',
      'Launch',
      'ReplayDeadLetters',
      'Report',
      'Tell',
      'Upload',
      'WatchAttempts',
      'WatchRun',
      'WatchUpload',
    ]);
  }, 300_000);

  test('its token allows nothing else', async () => {
    const response = await fetch(server.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({
        query: `mutation {
          saveAgent(input: { name: "other", dispatch: { pull: {} } }) { __typename }
          launchRun(input: { job: "knowledge_embedding" }) { __typename }
          claimTasks(input: { workerId: "w", agents: ["other"], limit: 1 }) { __typename }
        }`,
      }),
    });
    const refused = { __typename: 'Forbidden' };
    expect(await response.json()).toEqual({
      data: { saveAgent: refused, launchRun: refused, claimTasks: refused },
    });
  });
});
