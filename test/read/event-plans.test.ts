import { expect, test } from 'vitest';
import { createRead } from '../../src/read/read.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { createTestDatabase } from '../support/database.ts';
import { collectPlans, indexesOf, showPlans } from '../support/plans.ts';

// Behind a pooler no session tells its plans.
test.skipIf(process.env.TEST_POOLER_URL !== undefined)(
  'the few rejected events among many are found by their own index, on each page',
  async () => {
    const database = await createTestDatabase();
    await showPlans(database);
    const plane = await ControlPlane.start({ database });
    const plans = collectPlans(plane);
    await plane.rows(`
    insert into runplane.events (id, topic, correlation_id, source, payload, rejection)
    select gen_random_uuid(), 't', 'c', 'GRAPHQL', 'null',
           case when i % 1000 = 0 then jsonb_build_object('code', 'NOT_JSON', 'message', null, 'at', runplane.clock()) end
      from generate_series(1, 5000) i`);
    await plane.rows('analyze runplane.events');

    const { events } = createRead(plane.services.db);
    plans.length = 0;
    const first = await events.list({ rejected: true }, { first: 3 });
    const second = await events.list({ rejected: true }, { first: 3, after: first.edges[2]?.cursor });
    expect([first.edges.length, second.edges.length]).toEqual([3, 2]);
    expect([...first.edges, ...second.edges].every(({ node }) => node.rejection)).toBe(true);
    expect(plans.map(indexesOf)).toEqual([['events_rejected'], ['events_rejected']]);

    const others = await events.list({ rejected: false }, { first: 1 });
    expect(others.edges[0]?.node.rejection).toBeNull();
    await plane.stop();
  },
);
