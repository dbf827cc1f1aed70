import type { JsonObject } from '../domain/json.ts';
import type { SaveRouteInput } from './types.ts';

export interface PreviewInput {
  topic: string;
  payload: unknown;
  /** A route that is not saved, or not so; in place of the saved one of its name. */
  draft?: SaveRouteInput | null;
}
/** What a route would make of a message. */
export interface RoutePreview {
  route: string;
  job: string;
  /** What it gives; null where a template fails. */
  launch: {
    config: JsonObject;
    customer: string | null;
    labels: Record<string, string>;
    serialKey: string | null;
    estimatedTokens: number | null;
    priority: number;
  } | null;
  /** Why it would not launch; null: it would. */
  problem: string | null;
}
