/**
 * Sealed Secrets: values that only one node can read, so that they may lie in a broker or a repository. A sealed Secret is a v1 Secret with
 * the annotation `podsched.dev/sealed: x25519`, each of whose data values is a sealed box in base64; names and keys can be read, and the
 * length of a value. Whoever has the node's public key can seal: it says nothing about who wrote it (signatures do).
 *
 * A box is `01 ‖ ephemeral public key (32) ‖ ciphertext ‖ tag (16)`: X25519 of the ephemeral and the node's key (RFC 7748), HKDF-SHA-256
 * over it (RFC 5869; salt: both public keys, info: `podsched.dev/sealed/1`) gives the key and the nonce of AES-256-GCM. Bound by it as
 * additional data are the box's version and `namespace/name/key`: a value moved to another key or Secret does not open.
 *
 * Owns the node's sealing key: made once, kept in stateDir, never told.
 */

import {
  createCipheriv,
  createDecipheriv,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from 'node:crypto';
import { sealedAnnotation } from '../api/delivery.ts';
import { entryPath } from '../api/fieldPath.ts';
import type { Problem } from '../api/objects.ts';
import type { Secret } from '../api/v1.ts';
import type { Log } from '../world/log.ts';
import { isStoreCorrupt, type Store } from '../world/store.ts';
import { keyOfRaw, rawKey, rawText } from './rawKeys.ts';

const sealedScheme = 'x25519';
/** Where kubectl keeps a whole manifest, its values too. */
export const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

/** Where a value stands: it opens there only. */
export interface SealedPlace {
  readonly namespace: string;
  readonly name: string;
  readonly key: string;
}

export interface SealingKey {
  readonly privateKey: KeyObject;
  /** 32 bytes in base64: the value of the annotation `podsched.dev/sealing-key` of the node. */
  readonly publicKey: string;
}

const version = 1;
const tagBytes = 16;
const keyBytes = 32;
const info = 'podsched.dev/sealed/1';

/** The public key of an annotation. Throws when it is none. */
export function readRecipient(text: string): KeyObject {
  const raw = Buffer.from(text.trim(), 'base64');
  if (raw.length !== keyBytes || raw.toString('base64') !== text.trim()) throw new Error('a sealing key is 32 bytes in base64');
  return keyOfRaw(raw, 'x25519');
}

/** Seals one value for a node. */
export function sealValue(value: Uint8Array, place: SealedPlace, recipient: KeyObject): Uint8Array {
  const ephemeral = generateKeyPairSync('x25519');
  const own = rawKey(ephemeral.publicKey);
  const { key, nonce } = derive(diffieHellman({ privateKey: ephemeral.privateKey, publicKey: recipient }), own, rawKey(recipient));
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes }).setAAD(boundTo(place));
  return Buffer.concat([Buffer.from([version]), own, cipher.update(value), cipher.final(), cipher.getAuthTag()]);
}

/** The value of a box; undefined: it was not sealed for this node, or not for this place, or is broken. */
export function openValue(box: Uint8Array, place: SealedPlace, { privateKey, publicKey }: SealingKey): Uint8Array | undefined {
  if (box.length < 1 + keyBytes + tagBytes || box[0] !== version) return undefined;
  const own = box.subarray(1, 1 + keyBytes);
  try {
    const ephemeral = keyOfRaw(own, 'x25519');
    const { key, nonce } = derive(diffieHellman({ privateKey, publicKey: ephemeral }), own, Buffer.from(publicKey, 'base64'));
    const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes }).setAAD(boundTo(place));
    decipher.setAuthTag(box.subarray(-tagBytes));
    return Buffer.concat([decipher.update(box.subarray(1 + keyBytes, -tagBytes)), decipher.final()]);
  } catch {
    return undefined; // the tag does not fit, or a key that is none
  }
}

const boundTo = ({ namespace, name, key }: SealedPlace): Uint8Array =>
  Buffer.concat([Buffer.from([version]), Buffer.from(`${namespace}/${name}/${key}`)]);

function derive(
  shared: Uint8Array,
  ephemeral: Uint8Array,
  recipient: Uint8Array,
): { readonly key: Uint8Array; readonly nonce: Uint8Array } {
  const bytes = new Uint8Array(hkdfSync('sha256', shared, Buffer.concat([ephemeral, recipient]), info, 44));
  return { key: bytes.subarray(0, 32), nonce: bytes.subarray(32) };
}

/** Whether a Secret's values are boxes. */
export const isSealed = ({ metadata }: Pick<Secret, 'metadata'>): boolean => metadata.annotations?.[sealedAnnotation] !== undefined;

/** A Secret with every value of it sealed, stringData too, and its namespace spelled out. Throws when it is sealed already. */
export function sealSecret(secret: Secret, recipient: KeyObject): Secret {
  if (isSealed(secret)) throw new Error('it is sealed already');
  const { stringData = {}, data = {}, ...rest } = secret;
  const { namespace = 'default', name, annotations = {} } = secret.metadata;
  const kept = Object.entries(annotations).filter(([annotation]) => annotation !== lastApplied);
  const values = new Map(Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64')]));
  for (const [key, text] of Object.entries(stringData)) values.set(key, Buffer.from(text));
  const sealed = [...values].map(([key, value]) => [
    key,
    Buffer.from(sealValue(value, { namespace, name, key }, recipient)).toString('base64'),
  ]);
  return {
    ...rest,
    metadata: { ...secret.metadata, namespace, annotations: { ...Object.fromEntries(kept), [sealedAnnotation]: sealedScheme } },
    data: Object.fromEntries(sealed),
  };
}

export type Unsealed =
  | { readonly ok: true; readonly secret: Secret }
  | { readonly ok: false; readonly reason: 'CannotUnseal'; readonly message: string; readonly problem: Problem };

/** A sealed Secret with its values open, for this moment; one that is not sealed comes back as it is. Never throws. */
export function unsealSecret(secret: Secret, key: SealingKey | undefined): Unsealed {
  if (!isSealed(secret)) return { ok: true, secret };
  const refuse = (path: string, expected: string, got: string): Unsealed => ({
    ok: false,
    reason: 'CannotUnseal',
    message: `${path}: expected ${expected}, got ${got}`,
    problem: { path, expected, got },
  });
  const { annotations = {}, namespace = 'default', name } = secret.metadata;
  const scheme = annotations[sealedAnnotation];
  if (scheme !== sealedScheme) return refuse(entryPath('metadata.annotations', sealedAnnotation), sealedScheme, 'another scheme');
  if (key === undefined) return refuse(entryPath('metadata.annotations', sealedAnnotation), 'a node with a sealing key', 'none');
  if (Object.keys(secret.stringData ?? {}).length > 0)
    return refuse('stringData', 'sealed values in data only', 'a value that is not shown');
  const open: [string, string][] = [];
  for (const [dataKey, text] of Object.entries(secret.data ?? {})) {
    const value = openValue(Buffer.from(text, 'base64'), { namespace, name, key: dataKey }, key);
    const expected = `a value sealed for this node, as ${namespace}/${name} and this key`;
    if (value === undefined) return refuse(entryPath('data', dataKey), expected, 'a value that is not shown');
    open.push([dataKey, Buffer.from(value).toString('base64')]);
  }
  const others = Object.fromEntries(Object.entries(annotations).filter(([annotation]) => annotation !== sealedAnnotation));
  return { ok: true, secret: { ...secret, metadata: { ...secret.metadata, annotations: others }, data: Object.fromEntries(open) } };
}

const entry = 'sealing-key';

/** The node's sealing key: the stored one, else a new one, stored before anybody is told of it. */
export async function ownSealingKey(store: Pick<Store, 'get' | 'put'>, log: Log): Promise<SealingKey> {
  const stored = await store.get(entry).catch((e: unknown) => {
    if (!isStoreCorrupt(e)) throw e;
    log.error({ entry }, 'the sealing key cannot be read: Secrets sealed for this node must be sealed again');
    return undefined;
  });
  const known = readStored(stored);
  if (known !== undefined) return known;
  const { privateKey } = generateKeyPairSync('x25519');
  await store.put(entry, { kind: sealedScheme, privateKey: privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64') });
  return ofPrivate(privateKey);
}

const ofPrivate = (privateKey: KeyObject): SealingKey => ({ privateKey, publicKey: rawText(createPublicKey(privateKey)) });

function readStored(value: unknown): SealingKey | undefined {
  if (typeof value !== 'object' || value === null || !('privateKey' in value) || typeof value.privateKey !== 'string') return undefined;
  try {
    const privateKey = createPrivateKey({ key: Buffer.from(value.privateKey, 'base64'), format: 'der', type: 'pkcs8' });
    return privateKey.asymmetricKeyType === 'x25519' ? ofPrivate(privateKey) : undefined;
  } catch {
    return undefined; // from another version: a new one is made
  }
}
