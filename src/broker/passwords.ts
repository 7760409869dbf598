/**
 * The password file of the embedded broker, in mosquitto's own form: `user:password` a line, the password plain or as mosquitto_passwd
 * writes it (`$7$` PBKDF2-SHA512, `$6$` salted SHA-512). Only compares; never writes.
 */
import { createHash, pbkdf2, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';

const derive = promisify(pbkdf2);

/** Users and what is written behind their colon; comment lines and empty ones are skipped, the last line of a user counts. */
export function parsePasswords(text: string): ReadonlyMap<string, string> {
  const users = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(':');
    if (colon <= 0 || line.startsWith('#')) continue;
    users.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return users;
}

/** Does the password fit what the file says? An unreadable hash fits nothing. */
export async function passwordFits(stored: string, given: Uint8Array): Promise<boolean> {
  const parts = stored.split('$');
  if (parts[0] === '' && parts[1] === '7' && parts.length === 5) {
    const [, , iterations, salt, hash] = parts;
    const want = Buffer.from(hash ?? '', 'base64');
    const rounds = Number(iterations);
    if (want.length === 0 || !Number.isInteger(rounds) || rounds < 1 || rounds > 1_000_000) return false;
    return timingSafeEqual(await derive(given, Buffer.from(salt ?? '', 'base64'), rounds, want.length, 'sha512'), want);
  }
  if (parts[0] === '' && parts[1] === '6' && parts.length === 4) {
    const want = Buffer.from(parts[3] ?? '', 'base64');
    const got = createHash('sha512')
      .update(given)
      .update(Buffer.from(parts[2] ?? '', 'base64'))
      .digest();
    return want.length === got.length && timingSafeEqual(got, want);
  }
  // hashed first, so that the comparison takes as long for a short password as for a long one
  const digest = (x: Uint8Array | string) => createHash('sha256').update(x).digest();
  return timingSafeEqual(digest(given), digest(stored));
}
