import { Duty } from '../db/duty.ts';
import type { Database } from '../db/pool.ts';
import { statement } from '../db/transaction.ts';
import { newUuid } from '../domain/ids.ts';

export interface Piece<Position> {
  /** Where the next piece begins: of this round, or of the next one when this one is over. */
  position: Position;
  over: boolean;
}

export interface SharedDutyOptions<Position> {
  db: Database;
  name: string;
  /** From the end of a round to the start of the next. */
  everyMs: number;
  /** Between two pieces, for the work that matters more. */
  pauseMs: number;
  /** Does a piece of a round, well within the time that a turn is held. Position null: there was none before. */
  work(position: Position | null): Promise<Piece<Position>>;
  onError: (error: unknown, duty: string) => void;
}

/** A replica that was not heard of for so long has lost its turn. */
const holdSeconds = 60;

const createSql = `insert into runplane.duties (name) values ($1) on conflict (name) do nothing`;

// Of two replicas that come at the same time the second waits for the row, and then sees that it is taken.
const takeSql = `
with now as materialized (select runplane.clock() as at),
mine as (
  update runplane.duties d set holder = $2, held_until = n.at + make_interval(secs => $3)
    from now n
   where d.name = $1 and (d.holder = $2 or d.due_at <= n.at and (d.held_until is null or d.held_until < n.at))
  returning d.position)
select exists (select from mine) as mine, (select m.position from mine m) as position,
       (select extract(epoch from greatest(d.due_at, d.held_until) - n.at) * 1000 from runplane.duties d where d.name = $1)::float8 as "waitMs"
  from now n`;

const goOnSql = `update runplane.duties set position = $3 where name = $1 and holder = $2`;
const endSql = `
update runplane.duties set position = $3, holder = null, held_until = null, due_at = runplane.clock() + make_interval(secs => $4)
 where name = $1 and holder = $2`;

/**
 * A duty that one replica at a time does for all, in rounds of small pieces. Whose turn it is stands in a row: a lock
 * would have to be held over many transactions, which a pooler does not allow. Pieces have to bear being done twice,
 * by a replica that slept through its turn.
 */
export function createSharedDuty<Position>(options: SharedDutyOptions<Position>): Duty {
  const { db, name, everyMs, pauseMs, onError } = options;
  const holder = newUuid();
  let created = false;
  return new Duty({
    name,
    minGapMs: pauseMs,
    onError,
    runOnce: async () => {
      if (!created) await statement(db, { text: createSql, values: [name] });
      created = true;
      const { rows } = await statement<{ mine: boolean; position: Position | null; waitMs: number | null }>(
        db,
        { name: 'take-duty', text: takeSql, values: [name, holder, holdSeconds] },
      );
      const turn = rows[0];
      if (!turn?.mine) return Math.min(everyMs, Math.max(pauseMs, turn?.waitMs ?? everyMs));
      const { position, over } = await options.work(turn.position);
      const values = [name, holder, JSON.stringify(position)];
      if (over) {
        await statement(db, { name: 'end-duty', text: endSql, values: [...values, everyMs / 1000] });
      } else await statement(db, { name: 'go-on-duty', text: goOnSql, values });
      return over ? everyMs : 0;
    },
  });
}
