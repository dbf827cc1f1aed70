import { transaction } from '../../src/db/transaction.ts';
import type { ControlPlane } from './control-plane.ts';
import { openDatabase } from './database.ts';

export interface LateWriters {
  total: number;
  /** Settles when all is written. */
  done: Promise<void>;
  /** Removes what was written, which no run knows of. */
  cleanUp(): Promise<void>;
}

/**
 * Writers whose transactions commit late and in any order, on objects of their own and on one that all of them change
 * under a lock: changes of a run, with sequences from 2 on and a reason.
 */
export async function writeLate(
  plane: ControlPlane,
  runId: string,
  { writers, perWriter }: { writers: number; perWriter: number },
): Promise<LateWriters> {
  const db = openDatabase(plane.database.url, writers);
  await db.query({
    text: 'create table runplane.shared_object (sequence int); insert into runplane.shared_object values (1)',
  });
  const write = async (writer: number): Promise<void> => {
    for (let i = 0; i < perWriter; i++) {
      await transaction(db, async (tx) => {
        await tx.query({ text: 'select pg_current_xact_id()' });
        await tx.query({ text: 'select pg_sleep($1)', values: [Math.random() * 0.004] });
        const { rows } = await tx.query<{ sequence: number }>({
          text: 'update runplane.shared_object set sequence = sequence + 1 returning sequence',
        });
        await tx.query({
          text: `insert into runplane.change_log (run_id, sequence, to_status, reason, at) values ($1, $2, 'RUNNING', $3, now())`,
          values: [runId, rows[0]?.sequence, `${writer}/${i}`],
        });
        await tx.query({ text: 'select pg_sleep($1)', values: [Math.random() * 0.004] });
      });
      plane.services.signal.changed();
    }
  };
  const writing = Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)));
  return {
    total: writers * perWriter,
    done: writing.then(() => {}),
    cleanUp: async () => {
      await writing;
      await db.query({
        text: 'delete from runplane.change_log where reason is not null; drop table runplane.shared_object',
      });
      await db.close();
    },
  };
}
