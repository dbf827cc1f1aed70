import type { TestDatabase } from './database.ts';

export interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Cond'?: string;
  Plans?: PlanNode[];
}
export interface ShownPlan {
  query: string;
  node: PlanNode;
}

/** From now on each new session of this database tells how it executes every statement, also those of functions. */
export async function showPlans({ db, url }: TestDatabase): Promise<void> {
  const settings = {
    session_preload_libraries: 'auto_explain',
    'auto_explain.log_min_duration': '0',
    'auto_explain.log_nested_statements': 'on',
    'auto_explain.log_format': 'json',
    'auto_explain.log_level': 'notice',
  };
  const name = new URL(url).pathname.slice(1);
  for (const [setting, value] of Object.entries(settings))
    await db.query({ text: `alter database ${name} set ${setting} = '${value}'` });
}

/** The plan that a notice tells of, if it does. */
export function planOf(message: string | undefined): ShownPlan | null {
  const json = message?.match(/^duration: .* plan:\n(.*)/s)?.[1];
  if (json === undefined) return null;
  const shown = JSON.parse(json) as { 'Query Text': string; Plan: PlanNode };
  return { query: shown['Query Text'], node: shown.Plan };
}
