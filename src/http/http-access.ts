import { limits } from '../domain/limits.ts';
import type { TrustedDocuments } from './trusted-documents.ts';

/** What clients may do over HTTP. */
export interface HttpAccess {
  /** Of other sites whose pages may use the API. */
  origins: ReadonlySet<string>;
  /** Of one token, on this process; 0 is no limit. */
  requestsPerMinute: number;
  streamsPerToken: number;
  /** That a stream of many operations waits for its connection. */
  reservationSeconds: number;
  /** That a connection may be silent in the middle of a request or an answer. */
  silentSeconds: number;
  /** The only documents that are executed; null: any. */
  trustedDocuments: TrustedDocuments | null;
}

/** What settings allow, and what no setting changes. */
export const httpAccess = (
  { origins, requestsPerMinute, streamsPerToken }: AccessSettings,
  trustedDocuments: TrustedDocuments | null,
): HttpAccess => ({
  origins: new Set(origins),
  requestsPerMinute,
  streamsPerToken,
  reservationSeconds: limits.reservationSeconds,
  silentSeconds: limits.silentSeconds,
  trustedDocuments,
});

interface AccessSettings extends Pick<HttpAccess, 'requestsPerMinute' | 'streamsPerToken'> {
  origins: readonly string[];
}
