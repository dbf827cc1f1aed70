import type { Database } from '../../db/pool.ts';
import { transactionByKey } from '../../db/transaction.ts';
import { batchRows } from './old-pages.ts';

// A customer whose last turn is not after its lane's gets the lane's next one, with this row or without it.
const passedSql = `
delete from runplane.customer_turns c using (
  select p.agent_id, p.priority, p.customer from runplane.customer_turns p join runplane.agents a on a.id = p.agent_id
    join runplane.lane_turns l on l.queue_id = a.queue_id and l.priority = p.priority
   where p.turn <= l.turn order by p.agent_id, p.priority, p.customer limit ${batchRows} for update of p skip locked) p
 where c.agent_id = p.agent_id and c.priority = p.priority and c.customer = p.customer`;

/** Forgets customers that were served to their last turn; answers how many. */
export async function deletePassedTurns(db: Database): Promise<number> {
  const { rowCount } = await transactionByKey(db, (tx) =>
    tx.query({ name: 'delete-passed-turns', text: passedSql }),
  );
  return rowCount ?? 0;
}
