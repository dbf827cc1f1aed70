/** What a credential allows. None includes another. */
export const allScopes = [
  'READ',
  'PAYLOAD_READ',
  'LAUNCH',
  'PUBLISH',
  'WORK',
  'OPERATE',
  'CONFIGURE',
  'ADMIN',
] as const;
export type Scope = (typeof allScopes)[number];

/** What the scopes WORK, LAUNCH and PUBLISH are restricted to; null is no restriction. */
export interface Restrictions {
  /** Names of agents that tasks may be claimed for. */
  agents: readonly string[] | null;
  /** Names of jobs that may be launched. */
  jobs: readonly string[] | null;
  /** Patterns of topics that may be published to. */
  topics: readonly string[] | null;
}
const unrestricted: Restrictions = Object.freeze({ agents: null, jobs: null, topics: null });

/** Who asks. */
export interface Viewer {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** False: no credential came with the request, which is for lease tokens alone. */
  readonly signedIn: boolean;
  /** The same for everything that one token asks: for what is limited by token. Null: there is none. */
  readonly tokenId: string | null;
  readonly restrictions: Restrictions;
}

/** A credential that was good when its request came. */
export interface Authority {
  readonly viewer: Viewer;
  /** Whether it still is, by what is known since at most 30 s. */
  stands(): Promise<boolean>;
}

const authorityOf = (viewer: Viewer): Authority =>
  Object.freeze({ viewer: Object.freeze(viewer), stands: () => Promise.resolve(true) });

/** Everybody, where authentication is off. */
export const local = authorityOf({
  name: 'local',
  scopes: allScopes,
  signedIn: true,
  tokenId: null,
  restrictions: unrestricted,
});

/** Who brings no credential: may do nothing but what lease tokens allow. */
export const anonymous = authorityOf({
  name: 'anonymous',
  scopes: [],
  signedIn: false,
  tokenId: null,
  restrictions: unrestricted,
});
