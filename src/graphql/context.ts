import type { ChangeLog } from '../changelog/types.ts';
import type { PullDispatch, WorkHintSource } from '../dispatch/types.ts';
import type { Authority, Viewer } from '../domain/credential.ts';
import type { Intake } from '../intake/types.ts';
import type { ApiTokens } from '../operator/api-tokens.ts';
import type { Actions, Configuration } from '../operator/types.ts';
import type { Loaders } from '../read/loaders.ts';
import type { Read } from '../read/read.ts';
import type { AttemptEvents, Results } from '../result/types.ts';

/** What this server is like: its version, and the limits of a token that its settings have. */
export interface ServerFacts {
  version: string;
  /** Then there are no tokens, and no limits of them. */
  authenticationOff: boolean;
  streamsPerToken: number;
  /** 0 is no limit. */
  requestsPerMinute: number;
}

/** What answers the fields of the schema: resolvers only translate between it and the client. */
export interface Services {
  read: Read;
  intake: Intake;
  dispatch: PullDispatch;
  workHints: WorkHintSource;
  results: Results;
  attemptEvents: AttemptEvents;
  changeLog: ChangeLog;
  configuration: Configuration;
  actions: Actions;
  apiTokens: ApiTokens;
  server: ServerFacts;
}

/** One request. A subscription has one for as long as it lives. */
export interface GraphQLContext {
  services: Services;
  requestId: string;
  /** Makes a signal that aborts when the client leaves before it was answered. */
  signal: () => AbortSignal;
  /** Where a reconnecting stream wants to go on; wins over the subscription's own argument. */
  lastEventId?: string | null;
  /** W3C traceparent of the request, as it came. */
  traceparent?: string | null;
  viewer: Viewer;
  /** The credential behind the viewer, which may end while a stream lives. */
  authority: Authority;
  loaders: Loaders;
}
