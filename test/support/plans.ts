import type { ControlPlane } from './control-plane.ts';
import type { TestDatabase } from './database.ts';

interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Cond'?: string;
  'Index Name'?: string;
  /** How often it was begun; only where plans are measured. */
  'Actual Loops'?: number;
  /** On average, each time. */
  'Actual Rows'?: number;
  Plans?: PlanNode[];
}
export interface ShownPlan {
  query: string;
  node: PlanNode;
}

/** From now on each new session of this database tells how it executes every statement, also those of functions. */
export async function showPlans({ db, url }: TestDatabase, { measured = false } = {}): Promise<void> {
  const settings = {
    session_preload_libraries: 'auto_explain',
    'auto_explain.log_min_duration': '0',
    'auto_explain.log_nested_statements': 'on',
    'auto_explain.log_format': 'json',
    'auto_explain.log_level': 'notice',
    'auto_explain.log_analyze': measured ? 'on' : 'off',
  };
  const name = new URL(url).pathname.slice(1);
  for (const [setting, value] of Object.entries(settings))
    await db.query({ text: `alter database ${name} set ${setting} = '${value}'` });
}

/** The plans of everything that a plane executes from now on, in sessions that show them. */
export function collectPlans(plane: ControlPlane): ShownPlan[] {
  const plans: ShownPlan[] = [];
  plane.services.db.pool.on('connect', (client) => {
    client.on('notice', ({ message }) => {
      const plan = planOf(message);
      if (plan) plans.push(plan);
    });
  });
  return plans;
}

/** The first column of each index. */
export async function firstColumns({ db }: TestDatabase): Promise<ReadonlyMap<string, string>> {
  const { rows } = await db.query<{ index: string; column: string }>({
    text: `select c.relname as index, pg_get_indexdef(c.oid, 1, false) as column from pg_class c
            where c.relkind = 'i' and c.relnamespace = 'runplane'::regnamespace`,
  });
  return new Map(rows.map(({ index, column }) => [index, column]));
}

/**
 * What in a plan reads one of these tables and does not look for particular rows of it. Where the first column of an
 * index is not among what is looked for, all of the index is read.
 */
export const fullReads = (
  { node, query }: ShownPlan,
  tables: ReadonlySet<string>,
  columns: ReadonlyMap<string, string>,
): string[] =>
  nodesOf(node)
    .filter((one) => tables.has(one['Relation Name'] ?? ''))
    .filter((one) => /^(Seq|Index|Index Only) Scan$/.test(one['Node Type']))
    .filter((one) => {
      const column = columns.get(one['Index Name'] ?? '');
      return column === undefined || !new RegExp(`\\b${column}\\b`).test(one['Index Cond'] ?? '');
    })
    .map((one) => `${one['Node Type']} of ${one['Relation Name']} in: ${query.trim().slice(0, 200)}`);

/** What in a measured plan gives more rows than so many, all its repetitions together. */
export const manyRows = ({ node, query }: ShownPlan, most: number): string[] =>
  nodesOf(node)
    .filter((one) => (one['Actual Loops'] ?? 0) * (one['Actual Rows'] ?? 0) > most)
    .map(
      (one) =>
        `${one['Actual Loops']} times ${one['Actual Rows']} rows by ${one['Node Type']} in: ${query.trim().slice(0, 200)}`,
    );

/** The indexes that a plan reads. */
export const indexesOf = ({ node }: ShownPlan): string[] =>
  nodesOf(node).flatMap((one) => one['Index Name'] ?? []);

const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

/** The plan that a notice tells of, if it does. */
function planOf(message: string | undefined): ShownPlan | null {
  const json = message?.match(/^duration: .* plan:\n(.*)/s)?.[1];
  if (json === undefined) return null;
  const shown = JSON.parse(json) as { 'Query Text': string; Plan: PlanNode };
  return { query: shown['Query Text'], node: shown.Plan };
}
