/** Public keys as the 32 bytes that they are (RFC 8032, RFC 7748): read, written, and named after. */
import { createHash, createPublicKey, type KeyObject } from 'node:crypto';

/** What stands before the 32 bytes in a SubjectPublicKeyInfo (RFC 8410). */
const prefixes = { ed25519: '302a300506032b6570032100', x25519: '302a300506032b656e032100' } as const;

export const rawKey = (key: KeyObject): Uint8Array => key.export({ format: 'der', type: 'spki' }).subarray(-32);

/** In base64. */
export const rawText = (key: KeyObject): string => Buffer.from(rawKey(key)).toString('base64');

/** The name of a key where nobody gave it another: the first 16 hex digits of SHA-256 over its 32 bytes. */
export const keyIdOf = (publicKey: KeyObject): string => createHash('sha256').update(rawKey(publicKey)).digest('hex').slice(0, 16);

/** Throws when the bytes are no such key. */
export const keyOfRaw = (raw: Uint8Array, kind: keyof typeof prefixes): KeyObject =>
  createPublicKey({ key: Buffer.concat([Buffer.from(prefixes[kind], 'hex'), raw]), format: 'der', type: 'spki' });
