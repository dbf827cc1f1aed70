import { hostname, userInfo } from 'node:os';

/** The user of the system and the machine. In a container a user may be nothing but a number. */
export function systemUser(readName: () => string = () => userInfo().username): string {
  return `${nameOf(readName)}@${hostname()}`;
}

function nameOf(readName: () => string): string {
  try {
    return readName();
  } catch {
    return `uid-${process.getuid?.() ?? 'unknown'}`;
  }
}
