import { toPublicId } from '../../../src/domain/ids.ts';
import { actor, type ControlPlane } from '../../support/control-plane.ts';
import type { KnownThings } from './known-things.ts';

const agents = ['agent', 'other'];
/** An agent and a queue to resume. */
const paused = 'paused';

/** Objects of every kind and state, made by the services, which cases then use up and change. */
export class World {
  readonly #plane: ControlPlane;
  readonly #known: KnownThings;

  private constructor(plane: ControlPlane, known: KnownThings) {
    this.#plane = plane;
    this.#known = known;
  }

  static async prepare(plane: ControlPlane, known: KnownThings): Promise<World> {
    const world = new World(plane, known);
    known.addName('agent', ...agents, paused);
    known.addName('job', 'one', 'two', 'strict');
    known.addName('queue', 'queue', 'default', paused);
    known.addName('pool', 'core');
    known.addName('throttle', 'throttle');
    known.addName('route', 'route', 'disposable');
    known.addName('topic', 'topic', 'topic.deep', 'topic.*');
    known.addName('step', 'agent', 'first', 'second');
    known.addName('asset', 'asset');
    for (let round = 0; round < 3; round++) {
      await world.setRight();
      await plane.services.apiTokens.create({ name: 'token', scopes: ['READ', 'WORK'] }, actor);
    }
    return world;
  }

  /** There is always something that can be launched, claimed, reported, retried, replayed and cancelled. */
  async setRight(): Promise<void> {
    await this.#configure();
    await this.#work();
    await this.#learn();
  }

  async #configure(): Promise<void> {
    const { configuration } = this.#plane.services;
    await configuration.saveThrottle({ name: 'throttle' }, actor);
    await configuration.saveQueue({ name: 'queue', pool: 'core' }, actor);
    for (const name of agents) {
      await this.#plane.agent(name, { queue: 'queue', throttles: ['throttle'] });
      await configuration.resumeAgent({ name }, actor);
    }
    await configuration.resumeQueue({ name: 'queue' }, actor);
    await configuration.saveQueue({ name: paused, pool: 'core' }, actor);
    await configuration.pauseQueue({ name: paused }, actor);
    await this.#plane.agent(paused);
    await configuration.pauseAgent({ name: paused }, actor);
    await this.#plane.job('one', ['agent']);
    await this.#plane.job('two', [
      { name: 'first', agent: 'agent', assetKey: 'asset', maxAttempts: 2 },
      { name: 'second', agent: 'other', dependsOn: ['first'], readsAssetKeys: ['asset'] },
    ]);
    await this.#plane.job('strict', ['agent'], {
      type: 'object',
      properties: { text: { type: 'string' } },
      required: ['text'],
    });
    for (const name of ['route', 'disposable'])
      await configuration.saveRoute({ name, topic: 'topic.>', job: 'one' }, actor);
    await configuration.saveRoute({ name: 'strict', topic: 'topic', job: 'strict' }, actor);
  }

  /** Runs in every state, with leases that are held, dead letters and tasks that wait. */
  async #work(): Promise<void> {
    const plane = this.#plane;
    for (const job of ['one', 'two', 'one', 'two', 'one', 'one'])
      await plane.launch(job, { config: { text: 'x', tenant: 'y' }, labels: [{ key: 'k', value: 'v' }] });
    const claimed = await plane.claim(agents, 12);
    const [completed, failed, retried, cancelled, ...held] = claimed;
    if (completed) await plane.report(completed, { status: 'COMPLETED', output: { text: 'x' } });
    if (failed)
      await plane.report(failed, {
        status: 'FAILED',
        error: { code: 'NO', message: 'no', kind: 'PERMANENT' },
      });
    if (retried) await plane.report(retried, { status: 'FAILED', error: { code: 'NO', message: 'no' } });
    if (cancelled) await plane.services.actions.cancelRun({ runId: cancelled.runId }, actor);
    for (const assignment of [...(cancelled ? [cancelled] : []), ...held])
      this.#known.addLease(plane.credentials(assignment));
    await plane.launch('one', { availableAt: new Date(Date.UTC(2999, 0)) });
    await plane.launch('two', { config: { text: 'x' }, serialKey: 'key' });
    const { configuration, intake } = plane.services;
    await intake.publishEvents([{ topic: 'topic', payload: { text: 5 } }]);
    // An event whose route comes later, so that a replay launches it.
    await configuration.deleteRoute({ name: 'late' }, actor);
    await intake.publishEvents([{ topic: 'late', payload: { text: 'x' } }]);
    await configuration.saveRoute({ name: 'late', topic: 'late', job: 'one' }, actor);
  }

  /** Ends what is executed: only then is every limit kept again that cases lowered meanwhile. */
  async end(): Promise<void> {
    const leases = await this.#plane.rows<{ attemptId: string }>(
      `select attempt_id as "attemptId" from runplane.leases`,
    );
    for (const lease of leases) await this.#plane.report(lease, { status: 'COMPLETED' });
  }

  async #learn(): Promise<void> {
    const tables = {
      run: 'runs',
      task: 'tasks',
      att: 'attempts',
      evt: 'events',
      dlq: 'dead_letters',
    } as const;
    const configured = { tok: 'api_tokens', job: 'jobs', agent: 'agents', route: 'routes' } as const;
    for (const [prefix, table] of Object.entries({ ...tables, ...configured })) {
      const rows = await this.#plane.rows<{ id: string }>(
        `select id from runplane.${table} order by id desc limit 20`,
      );
      this.#known.learn(rows.map(({ id }) => toPublicId(prefix as keyof typeof tables, id)));
    }
  }
}
