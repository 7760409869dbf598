/** One file of keys.d into a trusted key, or into what is wrong with it; and back into what is stored. Never repeats the file's text. */

import { createPublicKey, type KeyObject } from 'node:crypto';
import { wrongLabel } from '../api/names.ts';
import { nearest } from '../api/nearest.ts';
import { isPlain } from '../api/plain.ts';
import { isVerb, type Verb } from '../api/verbs.ts';
import type { TrustedKey } from './dsse.ts';
import { keyIdOf, keyOfRaw, rawText } from './rawKeys.ts';

/** The key of a file by its name and text, or what is wrong with it. */
export function readKeyFile(name: string, text: string): TrustedKey | string {
  if (/PRIVATE KEY/.test(text)) return 'holds a private key: only public ones belong here, and this one is no secret any more';
  if (!name.endsWith('.json')) return ofKey(name, text, {});
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return 'is no JSON';
  }
  if (!isPlain(value)) return 'is no JSON object';
  for (const field of Object.keys(value)) {
    if (known.includes(field)) continue;
    const close = nearest(field, known);
    return `has an unknown field ${JSON.stringify(field.slice(0, 60))}${close === undefined ? '' : `; did you mean ${close}?`}`;
  }
  if (typeof value.publicKey !== 'string') return 'has no publicKey';
  return ofKey(name, value.publicKey, value);
}

const known: readonly string[] = ['keyid', 'publicKey', 'namespaces', 'sources', 'verbs'];

function ofKey(file: string, publicKey: string, fields: Readonly<Record<string, unknown>>): TrustedKey | string {
  const key = readPublicKey(publicKey);
  if (typeof key === 'string') return key;
  const { keyid = keyIdOf(key) } = fields;
  if (typeof keyid !== 'string' || !/^[\w.:@/+-]{1,128}$/.test(keyid))
    return 'keyid: expected at most 128 letters, digits and . : @ / + - _';
  const scopes: { namespaces?: readonly string[]; sources?: readonly string[]; verbs?: readonly Verb[] } = {};
  for (const [scope, right, example] of scopesOf) {
    const list = fields[scope];
    if (list === undefined) continue;
    const wrong = Array.isArray(list) ? list.findIndex((item: unknown) => typeof item !== 'string' || !right(item)) : 0;
    if (!Array.isArray(list) || wrong >= 0) return `${scope}${Array.isArray(list) ? `[${wrong}]` : ''}: expected ${example}`;
    Object.assign(scopes, { [scope]: list });
  }
  return { keyid, publicKey: key, file, ...scopes };
}

const scopesOf: readonly (readonly ['namespaces' | 'sources' | 'verbs', (text: string) => boolean, string])[] = [
  ['namespaces', (text) => wrongLabel(text) === undefined, 'a list of namespaces'],
  [
    'sources',
    (text) =>
      ['file', 'mqtt', 'mqtt:node', 'mqtt:group', 'mqtt:all'].includes(text) ||
      (/^mqtt:group\/./.test(text) && wrongLabel(text.slice(11)) === undefined),
    'a list of file, mqtt, mqtt:node, mqtt:group, mqtt:group/<group> and mqtt:all',
  ],
  ['verbs', isVerb, 'a list of verbs'],
];

/** PEM, or the 32 bytes in base64. */
function readPublicKey(text: string): KeyObject | string {
  const raw = /^[A-Za-z0-9+/]{43}=$/.test(text.trim()) ? Buffer.from(text.trim(), 'base64') : undefined;
  try {
    const key = raw === undefined ? createPublicKey(text) : keyOfRaw(raw, 'ed25519');
    return key.asymmetricKeyType === 'ed25519' ? key : `holds a key of the kind ${key.asymmetricKeyType}; only ed25519 is taken`;
  } catch {
    return 'holds no public key in PEM form (podsched keygen writes one)';
  }
}

/** The key as JSON that `readKeyFile` reads. */
export const keyFileText = ({ keyid, publicKey, namespaces, sources, verbs }: TrustedKey): string =>
  JSON.stringify({ publicKey: rawText(publicKey), keyid, namespaces, sources, verbs });
