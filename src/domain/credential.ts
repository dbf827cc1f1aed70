import { patternCovers, topicMatches } from './topic.ts';

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
export const unrestricted: Restrictions = Object.freeze({ agents: null, jobs: null, topics: null });

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
  /** Whether that is known without asking the database; false says nothing. */
  surelyStands(): boolean;
}

/** Finds out whose a credential is; null: nobody's, for whatever reason. */
export interface Credentials {
  /** Who asks without one. */
  readonly none: Authority;
  ofToken(token: string): Promise<Authority | null>;
  ofSession(cookie: string): Promise<Authority | null>;
  /** A session of the page, in place of a token. It ends with its token. */
  openSession(token: string): Promise<Session | null>;
  closeSession(cookie: string): Promise<void>;
}
export interface Session {
  cookie: string;
  seconds: number;
}

const authorityOf = (viewer: Viewer): Authority =>
  Object.freeze({
    viewer: Object.freeze(viewer),
    stands: () => Promise.resolve(true),
    surelyStands: () => true,
  });

const local = authorityOf({
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

const everybody = (): Promise<Authority> => Promise.resolve(local);

/** Everybody may do everything: on a loopback host only. */
export const authenticationOff: Credentials = Object.freeze({
  none: local,
  ofToken: everybody,
  ofSession: everybody,
  openSession: () => Promise.resolve(null),
  closeSession: () => Promise.resolve(),
});

/** The first scope that a viewer would have to have to give these to others. */
export const scopeLacked = (viewer: Viewer, scopes: readonly Scope[]): Scope | null =>
  scopes.find((scope) => !viewer.scopes.includes(scope)) ?? null;

type RestrictedTo = keyof Restrictions;

/** What each restriction is of. */
export const restrictedScopes = {
  agents: 'WORK',
  jobs: 'LAUNCH',
  topics: 'PUBLISH',
} as const satisfies Record<RestrictedTo, Scope>;

/** Whether there is something that a restriction bounds: what these scopes allow, or who has them can grant. */
export const isBounded = (kind: RestrictedTo, scopes: readonly Scope[]): boolean =>
  scopes.includes(restrictedScopes[kind]) || scopes.includes('ADMIN');

/** Whether a viewer may use a name with a scope that is restricted to some. */
export function isAllowed(viewer: Viewer, kind: RestrictedTo, name: string): boolean {
  const allowed = viewer.restrictions[kind];
  if (allowed === null) return true;
  return kind === 'topics' ? allowed.some((pattern) => topicMatches(pattern, name)) : allowed.includes(name);
}

/** The first restriction of a viewer that a token with the given ones would escape from. */
export function restrictionEscaped(
  viewer: Viewer,
  given: Restrictions,
  scopes: readonly Scope[],
): RestrictedTo | null {
  const escapes = (kind: RestrictedTo): boolean => {
    const allowed = viewer.restrictions[kind];
    if (allowed === null || !isBounded(kind, scopes)) return false;
    const covers = kind === 'topics' ? patternCovers : (own: string, other: string) => own === other;
    return given[kind]?.every((entry) => allowed.some((own) => covers(own, entry))) !== true;
  };
  return (['agents', 'jobs', 'topics'] as const).find(escapes) ?? null;
}
