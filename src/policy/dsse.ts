// pure
/**
 * Signed envelopes (DSSE v1, github.com/secure-systems-lab/dsse): what was signed is the payload's very bytes and its type, put together by
 * PAE, so that nothing is parsed before it is known who signed it. Ed25519 only. One good signature of a known key suffices, and all good
 * ones are told: keys have different scopes (`trust.ts`). Envelopes come from anybody: size, depth and the number of tries are bounded.
 */

import { type KeyObject, verify } from 'node:crypto';
import { isDeeper } from '../api/jsonDepth.ts';
import { isPlain } from '../api/plain.ts';
import type { Verb } from '../api/verbs.ts';

/** A key of keys.d. Absent scope: no bound. */
export interface TrustedKey {
  /** First 16 hex digits of SHA-256 over the raw key, unless the file names another. */
  readonly keyid: string;
  /** Ed25519. */
  readonly publicKey: KeyObject;
  /** In keys.d. */
  readonly file: string;
  readonly namespaces?: readonly string[];
  /** `file`, `mqtt`, `mqtt:node`, `mqtt:group`, `mqtt:group/<g>`, `mqtt:all`. */
  readonly sources?: readonly string[];
  readonly verbs?: readonly Verb[];
}

/** What an envelope may hold; an envelope for one use is none for another. */
export type PayloadKind = 'manifest' | 'command' | 'index' | 'config';

export const manifestYaml = 'application/vnd.podsched.manifest+yaml';
export const manifestJson = 'application/vnd.podsched.manifest+json';
export const payloadTypes: Readonly<Record<PayloadKind, readonly string[]>> = {
  manifest: [manifestYaml, manifestJson],
  command: ['application/vnd.podsched.command+json'],
  index: ['application/vnd.podsched.index+json'],
  config: ['application/vnd.podsched.config+json'],
};

/** Why nothing of it is taken. */
export type EnvelopeReason = 'Unsigned' | 'SignatureInvalid' | 'KeyUnknown' | 'WrongPayloadType';

export type Opened =
  | {
      readonly ok: true;
      readonly payload: Uint8Array;
      readonly payloadType: string;
      /** The first known key whose signature is good. */
      readonly key: TrustedKey;
      /** All of them, never empty. */
      readonly keys: readonly TrustedKey[];
    }
  | { readonly ok: false; readonly reason: EnvelopeReason; readonly message: string };

/** Room for a manifest of 1 MiB in base64 and its signatures. */
const maxEnvelopeBytes = 3 << 19;
const maxDepth = 8;
const maxSignatures = 16;
/** A verification takes a Pi less than a millisecond; nobody may ask for thousands. */
const maxTries = 32;

/** Pre-authentication encoding: `DSSEv1 <len> <type> <len> <payload>`, lengths in bytes. */
export function pae(payloadType: string, payload: Uint8Array): Uint8Array {
  const type = Buffer.from(payloadType);
  return Buffer.concat([Buffer.from(`DSSEv1 ${type.length} `), type, Buffer.from(` ${payload.length} `), payload]);
}

interface Envelope {
  readonly payloadType: string;
  readonly payload: string;
  readonly signatures: readonly unknown[];
}

/** Whether a parsed JSON value has an envelope's shape; whether it is a good one is another question. */
export const isEnvelope = (value: unknown): value is Envelope =>
  isPlain(value) && typeof value.payloadType === 'string' && typeof value.payload === 'string' && Array.isArray(value.signatures);

/** Whether bytes are meant as an envelope: a JSON object with its three names. Costs a look through the bytes, and no parsing of others. */
export function looksLikeEnvelope(bytes: Uint8Array): boolean {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  return (
    /^\s*\{/.test(text.toString('latin1', 0, 64)) && ['"payloadType"', '"payload"', '"signatures"'].every((name) => text.includes(name))
  );
}

/** Opens an envelope for one use. Never throws. `Unsigned`: it is no envelope at all. */
export function openEnvelope(bytes: Uint8Array, keys: readonly TrustedKey[], kind: PayloadKind): Opened {
  const envelope = readEnvelope(bytes);
  if ('reason' in envelope) return envelope;
  return check(envelope, envelope.payload, keys, kind);
}

/**
 * Opens an envelope that lies beside the bytes it is about (`x.yaml.sig` beside `x.yaml`): its payload is empty, or those very bytes. Never
 * throws.
 */
export function openDetached(signature: Uint8Array, content: Uint8Array, keys: readonly TrustedKey[], kind: PayloadKind): Opened {
  const envelope = readEnvelope(signature);
  if ('reason' in envelope) return envelope.reason === 'Unsigned' ? invalid('it is no envelope') : envelope;
  const { payload } = envelope;
  if (payload.length > 0 && Buffer.compare(payload, content) !== 0) return invalid('it is about other bytes than those beside it');
  return check(envelope, content, keys, kind);
}

/** What an envelope holds, whoever signed it: for who asks for no signature and knows no key. Never throws. */
export function withoutProof(bytes: Uint8Array, kind: PayloadKind): { readonly ok: true; readonly payload: Uint8Array } | Refused {
  const envelope = readEnvelope(bytes);
  if ('reason' in envelope) return envelope;
  return wrongType(envelope.payloadType, kind) ?? { ok: true, payload: envelope.payload };
}

type Refused = Extract<Opened, { ok: false }>;

const invalid = (message: string): Refused => ({ ok: false, reason: 'SignatureInvalid', message });

/** An envelope with its payload decoded. */
type ReadEnvelope = Omit<Envelope, 'payload'> & { readonly payload: Uint8Array };

function readEnvelope(bytes: Uint8Array): ReadEnvelope | Refused {
  if (!looksLikeEnvelope(bytes)) return { ok: false, reason: 'Unsigned', message: 'it is no signed envelope' };
  if (bytes.length > maxEnvelopeBytes) return invalid(`the envelope has ${bytes.length} bytes, at most ${maxEnvelopeBytes} are read`);
  if (isDeeper(bytes, maxDepth)) return invalid(`the envelope has more than ${maxDepth} levels`);
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    if (!isEnvelope(value)) return { ok: false, reason: 'Unsigned', message: 'it is no signed envelope' };
    if (value.signatures.length > maxSignatures)
      return invalid(`it has ${value.signatures.length} signatures, at most ${maxSignatures} are read`);
    const payload = fromBase64(value.payload);
    return payload === undefined ? invalid('the payload is no base64') : { ...value, payload };
  } catch {
    return invalid('the envelope is no JSON'); // what a parser says of it would quote it
  }
}

/** Standard or URL-safe, padded or not, as the specification asks of readers. */
function fromBase64(text: string): Uint8Array | undefined {
  const digits = text.endsWith('==') ? text.slice(0, -2) : text.endsWith('=') ? text.slice(0, -1) : text;
  return digits.length % 4 === 1 || !/^[A-Za-z0-9+/_-]*$/.test(digits) ? undefined : Buffer.from(digits, 'base64');
}

function check({ payloadType, signatures }: ReadEnvelope, payload: Uint8Array, keys: readonly TrustedKey[], kind: PayloadKind): Opened {
  const wrong = wrongType(payloadType, kind);
  if (wrong !== undefined) return wrong;
  const message = pae(payloadType, payload);
  const good = new Set<TrustedKey>();
  let tries = 0;
  let known = false;
  for (const signature of signatures) {
    if (!isPlain(signature)) continue;
    const { keyid, sig } = signature;
    const bytes = typeof sig === 'string' ? fromBase64(sig) : undefined;
    // the id is a hint that nobody signed: without one, or with one that keys.d has under another name, every key is tried
    const named = typeof keyid === 'string' && keyid !== '' ? keys.filter((k) => k.keyid === keyid) : undefined;
    const candidates = named === undefined || named.length === 0 ? keys : named;
    if (named === undefined ? keys.length > 0 : named.length > 0) known = true;
    if (bytes?.length !== 64) continue;
    for (const key of candidates) {
      if (good.has(key) || ++tries > maxTries) continue;
      if (isGood(message, key.publicKey, bytes)) good.add(key);
    }
  }
  const all = [...good];
  const [key] = all;
  if (key !== undefined) return { ok: true, payload, payloadType, key, keys: all };
  if (signatures.length === 0) return invalid('the envelope has no signature');
  if (known) return invalid('no signature of a known key fits what is signed');
  return { ok: false, reason: 'KeyUnknown', message: `none of its keys is in keys.d${idsText(signatures)}` };
}

function wrongType(payloadType: string, kind: PayloadKind): Refused | undefined {
  if (payloadTypes[kind].includes(payloadType)) return undefined;
  const message = `it is signed as ${JSON.stringify(payloadType.slice(0, 80))}, not as ${payloadTypes[kind].join(' or ')}`;
  return { ok: false, reason: 'WrongPayloadType', message };
}

function isGood(message: Uint8Array, key: KeyObject, signature: Uint8Array): boolean {
  try {
    return key.asymmetricKeyType === 'ed25519' && verify(null, message, key, signature);
  } catch {
    return false; // a point that is none
  }
}

const idsText = (signatures: readonly unknown[]): string => {
  const ids = signatures.flatMap((s) => (isPlain(s) && typeof s.keyid === 'string' && /^[\w.:@/-]{1,80}$/.test(s.keyid) ? [s.keyid] : []));
  return ids.length === 0 ? '' : ` (${ids.slice(0, 3).join(', ')})`;
};
