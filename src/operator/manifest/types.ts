import type { Difference } from '../../domain/difference.ts';
import type { Noun } from '../rows.ts';
import type {
  Actor,
  SaveAgentInput,
  SaveJobInput,
  SavePoolInput,
  SaveQueueInput,
  SaveRouteInput,
  SaveThrottleInput,
} from '../types.ts';

/** Absent leaves an object that is there as it is. */
interface Pausable {
  paused?: boolean | null;
}

/** The input of each kind; nothing in it is checked yet but its shape. */
export interface ManifestInputs {
  throttle: SaveThrottleInput;
  pool: SavePoolInput;
  queue: SaveQueueInput & Pausable;
  agent: SaveAgentInput & Pausable;
  job: SaveJobInput;
  route: SaveRouteInput;
}

/** One object of a manifest: an input of its kind, and where it stands in the kind's list. */
export interface ManifestEntry {
  noun: Noun;
  index: number;
  input: ManifestInputs[Noun];
}

/** An object that has no shape in which it could be checked. */
export interface MisshapenEntry {
  noun: Noun;
  /** Null where it has none. */
  name: string | null;
}

export interface ApplyOptions {
  actor: Actor;
  /** Disables what the manifest lacks, and deletes routes that it lacks. */
  prune: boolean;
  /** Finds out what would be done, and does nothing. */
  dryRun: boolean;
  misshapen: readonly MisshapenEntry[];
  /** There is something wrong already: what can be checked is, and nothing is done. */
  refused: boolean;
}

/** What is wrong with an entry, in which of its fields; null: with the whole. */
export interface ManifestProblem {
  noun: Noun;
  index: number;
  field: string | null;
  message: string;
}

export interface ObjectChange {
  action: 'create' | 'update' | 'unchanged' | 'disable' | 'delete';
  noun: Noun;
  name: string;
  /** Before and after; null where it is not there. */
  versions: { before: number | null; after: number | null };
  /** What an update or a disablement changes. */
  fields: Difference[];
  /** That nothing comes of it as it is now. */
  state: 'paused' | 'disabled' | null;
}

export type ApplyOutcome =
  | { kind: 'Applied'; changes: ObjectChange[] }
  | { kind: 'Refused'; problems: ManifestProblem[] };
