import { limits } from './limits.ts';

/** Why a text is no topic (no wildcards) or no topic pattern (* is one token, > the rest, last only); null when it is one. */
export function topicFault(text: string, wildcards: boolean): string | null {
  if (Buffer.byteLength(text) > limits.nameBytes) return `is longer than ${limits.nameBytes} bytes`;
  const tokens = text.split('.');
  for (const [i, token] of tokens.entries()) {
    if (token === '') return 'has an empty token between its dots';
    if (/[\s\p{Cc}\p{Cs}]/u.test(token)) return 'contains white space or control characters';
    if (token === '>' && wildcards && i < tokens.length - 1) return 'has > before its last token';
    if ((token === '*' || token === '>') && !wildcards) return 'contains a wildcard';
    if (token.length > 1 && /[*>]/.test(token)) return 'has a wildcard that is only part of a token';
  }
  return null;
}

/** NATS subject matching. */
export function topicMatches(pattern: string, topic: string): boolean {
  const wanted = pattern.split('.');
  const tokens = topic.split('.');
  for (const [i, want] of wanted.entries()) {
    if (want === '>') return tokens.length > i;
    if (i >= tokens.length || (want !== '*' && want !== tokens[i])) return false;
  }
  return wanted.length === tokens.length;
}

/** Whether every topic that the other pattern matches is matched by this one. */
export function patternCovers(pattern: string, other: string): boolean {
  // As a topic, * is matched by * and > alone. > may stand for more tokens than any pattern without it has.
  return topicMatches(pattern, other) && (!other.endsWith('>') || pattern.endsWith('>'));
}
