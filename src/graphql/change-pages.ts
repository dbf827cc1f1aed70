import type { ChangePageRequest, Changes } from '../changelog/types.ts';
import { limits } from '../domain/limits.ts';
import { parseNumber } from '../domain/scalars.ts';
import { parsePage } from '../read/page.ts';
import { whileAuthorized } from './authority-watch.ts';
import { builder } from './builder.ts';
import { toRunChangeFilter, toTaskChangeFilter } from './change-stream.ts';
import { RunStatusChanges, TaskStatusChanges } from './changes.ts';
import type { GraphQLContext } from './context.ts';
import { streamError } from './errors.ts';
import { RunFilterInput, TaskFilterInput } from './filters.ts';

const pageArgs = builder.args((t) => ({
  after: t.field({
    type: 'Cursor',
    description:
      'Cursor of the change log: of a page, a stream, a launch or changeLogCursor. Absent begins with the oldest change that is kept.',
  }),
  first: t.int({
    description:
      'How many changes, 1 to 200, default 50; more than 200 is refused. A page exceeds it only by changes that have to come before one of its own.',
  }),
  waitSeconds: t.float({ description: 'How long to wait for a first change, 0 to 25 seconds; default 0.' }),
}));

interface PageArgs {
  after?: string | null;
  first?: number | null;
  waitSeconds?: number | null;
}

async function readPage<Change>(
  context: GraphQLContext,
  { after, first, waitSeconds }: PageArgs,
  read: (page: ChangePageRequest) => Promise<Changes<Change>>,
): Promise<Changes<Change>> {
  try {
    const waitMs = Math.round(parseNumber(waitSeconds ?? 0, 'waitSeconds', 0, limits.waitSeconds) * 1000);
    const { limit } = parsePage({ first });
    return await whileAuthorized(
      context,
      waitSeconds,
      (clientGone) => read({ after: after ?? null, first: limit, waitMs, clientGone }),
      // What happened is not shown to who may not see it any more.
      () => true,
    );
  } catch (error) {
    throw streamError(error);
  }
}

const says =
  'as pages, oldest first: for history, and for clients that cannot stream. A page may be short or empty before it is caughtUp; go on after its cursor. CURSOR_EXPIRED and INVALID_CURSOR as on the stream. Needs READ.';

builder.queryFields((t) => ({
  taskStatusChanges: t.field({
    type: TaskStatusChanges,
    nullable: true,
    description: `Changes of the status of tasks ${says}`,
    args: {
      filter: t.arg({ type: TaskFilterInput, description: 'Which changes; absent is all.' }),
      ...pageArgs,
    },
    resolve: (_, { filter, ...args }, context) => {
      const wanted = toTaskChangeFilter(filter);
      return readPage(context, args, (page) => context.services.changeLog.taskChangePage(wanted, page));
    },
  }),
  runStatusChanges: t.field({
    type: RunStatusChanges,
    nullable: true,
    description: `Changes of the status of runs ${says}`,
    args: {
      filter: t.arg({ type: RunFilterInput, description: 'Which changes; absent is all.' }),
      ...pageArgs,
    },
    resolve: (_, { filter, ...args }, context) => {
      const wanted = toRunChangeFilter(filter);
      return readPage(context, args, (page) => context.services.changeLog.runChangePage(wanted, page));
    },
  }),
}));
