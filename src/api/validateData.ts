// pure
/** Validation of ConfigMaps and Secrets: keys, size, and what each type of Secret must hold. Values are never repeated. */
import { sealedAnnotation } from './delivery.ts';
import { entryPath } from './fieldPath.ts';
import { wrongDataKey } from './names.ts';
import type { Problem } from './objects.ts';
import { isPlain } from './plain.ts';
import { problemIf } from './problems.ts';
import type { ConfigMap, Secret } from './v1.ts';

const largestBytes = 2 ** 20;

const base64Bytes = (text: string): number => (text.length / 4) * 3 - (text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0);
const utf8Bytes = (text: string): number => new TextEncoder().encode(text).length;

const keys = (field: string, map: Readonly<Record<string, string>> | undefined): Problem[] =>
  Object.keys(map ?? {}).flatMap((key) => problemIf(wrongDataKey(key), entryPath(field, key), key));

const sum = (map: Readonly<Record<string, string>> | undefined, bytes: (text: string) => number): number =>
  Object.values(map ?? {}).reduce((total, value) => total + bytes(value), 0);

const tooLarge = (total: number, path: string): Problem[] =>
  total > largestBytes ? [{ path, expected: `at most ${largestBytes} bytes in all`, got: `${total} bytes` }] : [];

/** Every mistake of a ConfigMap's data. */
export function validateConfigMap(o: ConfigMap): Problem[] {
  const twice = Object.keys(o.binaryData ?? {})
    .filter((key) => Object.hasOwn(o.data ?? {}, key))
    .map((key) => ({ path: entryPath('binaryData', key), expected: 'a key that data does not have', got: 'the same key' }));
  const total = sum(o.data, utf8Bytes) + sum(o.binaryData, base64Bytes);
  return [...keys('data', o.data), ...keys('binaryData', o.binaryData), ...twice, ...tooLarge(total, 'data')];
}

/** What a type must hold: one of each list. */
const needs: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'kubernetes.io/dockercfg': [['.dockercfg']],
  'kubernetes.io/dockerconfigjson': [['.dockerconfigjson']],
  'kubernetes.io/basic-auth': [['username', 'password']],
  'kubernetes.io/ssh-auth': [['ssh-privatekey']],
  'kubernetes.io/tls': [['tls.crt'], ['tls.key']],
};
/** Keys that hold credentials for registries: what is wrong with such a text, if anything is. */
const credentials: Readonly<Record<string, (text: string) => string | undefined>> = {
  '.dockercfg': (text) => (isPlain(parsed(text)) ? undefined : 'JSON: a mapping of registries'),
  '.dockerconfigjson': (text) => {
    const config = parsed(text);
    return isPlain(config) && isPlain(config.auths) ? undefined : 'JSON with the mapping "auths"';
  },
};

/** Every mistake of a Secret's data. stringData wins over data, as the API server merges them. */
export function validateSecret(o: Secret): Problem[] {
  const problems = [...keys('data', o.data), ...keys('stringData', o.stringData)];
  const strings = o.stringData ?? {};
  const data = Object.fromEntries(Object.entries(o.data ?? {}).filter(([key]) => !Object.hasOwn(strings, key)));
  problems.push(...tooLarge(sum(data, base64Bytes) + sum(strings, utf8Bytes), 'data'));
  const type = o.type ?? 'Opaque';
  for (const oneOf of Object.hasOwn(needs, type) ? (needs[type] ?? []) : []) {
    const key = oneOf.find((k) => Object.hasOwn(strings, k) || Object.hasOwn(data, k));
    if (key === undefined) problems.push({ path: 'data', expected: `${oneOf.join(' or ')}, since the type is ${type}`, got: 'nothing' });
    const wrong = key === undefined || !Object.hasOwn(credentials, key) ? undefined : credentials[key];
    // what is sealed is judged by whoever opens it
    if (key === undefined || wrong === undefined || o.metadata?.annotations?.[sealedAnnotation] !== undefined) continue;
    const isString = Object.hasOwn(strings, key);
    const expected = wrong((isString ? strings[key] : fromBase64(data[key] ?? '')) ?? '');
    if (expected !== undefined)
      problems.push({ path: entryPath(isString ? 'stringData' : 'data', key), expected, got: 'text that is none' });
  }
  return problems;
}

const fromBase64 = (text: string): string => new TextDecoder().decode(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));

/** undefined: it is no JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // that is the answer
  }
}
