// pure
/**
 * What a container uses of ConfigMaps and Secrets, and a mark over exactly that: written on the container when it is made, it tells later
 * whether something of it has changed, over restarts of the agent too.
 *
 * A mark holds for each object a keyed hash (HMAC-SHA-256 under a random key of this node), so that nobody who reads what the runtime keeps
 * can try out values: a plain hash of a short password is the password. With the key go its first hex digits, so that a mark of another key
 * is told apart from a change. Scheme "1" of the text is a contract with every later release.
 */
import { createHash, createHmac } from 'node:crypto';
import { cleanFilePath } from './filePaths.ts';
import type { ObjectReference } from './references.ts';
import type { ConfigMap, Container, KeyToPath, Pod, Secret, VolumeMount } from './v1.ts';

/** On a pod: containers that use a changed key restart in place. */
const restartOnChangeAnnotation = 'podsched.dev/restart-on-change';
/** On a container: its mark. */
export const configHashAnnotation = 'podsched.dev/config-hash';

export const wantsRestartOnChange = ({ metadata }: Pick<Pod, 'metadata'>): boolean =>
  metadata.annotations?.[restartOnChangeAnnotation] === 'true';

/** What one container uses of one object. */
export interface ObjectUse extends ObjectReference {
  /** `all`: every key; `texts`: every key that an environment can have; `named`: only `keys`. */
  readonly what: 'all' | 'texts' | 'named';
  readonly keys: readonly string[];
  /** Without the object, or one of these keys, the container cannot be made. */
  readonly required: boolean;
  readonly requiredKeys: readonly string[];
}

interface Part {
  readonly what?: ObjectUse['what'];
  readonly keys?: readonly string[];
  readonly required?: boolean;
  readonly requiredKeys?: readonly string[];
}

class Uses {
  #uses = new Map<string, ObjectUse>();

  add(kind: ObjectUse['kind'], name: string | undefined, { what = 'named', keys = [], required = false, requiredKeys = [] }: Part): void {
    if (!name) return;
    const before = this.#uses.get(`${kind}/${name}`);
    const widths = [before?.what, what];
    this.#uses.set(`${kind}/${name}`, {
      kind,
      name,
      what: widths.includes('all') ? 'all' : widths.includes('texts') ? 'texts' : 'named',
      keys: together(before?.keys, keys),
      required: before?.required === true || required,
      requiredKeys: together(before?.requiredKeys, requiredKeys),
    });
  }

  list(): ObjectUse[] {
    return [...this.#uses].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, use]) => use);
  }
}

const together = (a: readonly string[] = [], b: readonly string[] = []): string[] => [...new Set([...a, ...b])].sort();

/** All that a container takes into its environment and from the volumes that it mounts, each object once. */
export function usesOf({ spec }: Pick<Pod, 'spec'>, container: Pick<Container, 'env' | 'envFrom' | 'volumeMounts'>): ObjectUse[] {
  const uses = new Uses();
  for (const { configMapRef: map, secretRef: secret } of container.envFrom ?? []) {
    uses.add('ConfigMap', map?.name, { what: 'texts', required: map?.optional !== true });
    uses.add('Secret', secret?.name, { what: 'texts', required: secret?.optional !== true });
  }
  for (const { valueFrom } of container.env ?? []) {
    const key = (ref: { readonly key: string; readonly optional?: boolean } | undefined): Part =>
      ref === undefined ? {} : { keys: [ref.key], ...(ref.optional !== true && { required: true, requiredKeys: [ref.key] }) };
    uses.add('ConfigMap', valueFrom?.configMapKeyRef?.name, key(valueFrom?.configMapKeyRef));
    uses.add('Secret', valueFrom?.secretKeyRef?.name, key(valueFrom?.secretKeyRef));
  }
  for (const { name, configMap, secret, projected } of spec.volumes ?? []) {
    const mounts = (container.volumeMounts ?? []).filter((m) => m.name === name);
    if (mounts.length === 0) continue;
    uses.add('ConfigMap', configMap?.name, fromVolume(configMap, mounts));
    uses.add('Secret', secret?.secretName, fromVolume(secret, mounts));
    for (const source of projected?.sources ?? []) {
      uses.add('ConfigMap', source.configMap?.name, fromVolume(source.configMap, mounts));
      uses.add('Secret', source.secret?.name, fromVolume(source.secret, mounts));
    }
  }
  return uses.list();
}

/** The volume is made of all its items, so all of them must be there; what subPaths show of it is all that the container uses. */
function fromVolume(
  source: { readonly items?: readonly KeyToPath[]; readonly optional?: boolean } | undefined,
  mounts: readonly VolumeMount[],
): Part {
  const { items = [], optional } = source ?? {};
  const paths = mounts.map((m) => (m.subPathExpr ? '' : cleanFilePath(m.subPath ?? '')));
  const shows = (path: string): boolean => paths.some((p) => p === '' || p === path || path.startsWith(`${p}/`));
  const required: Part = { required: optional !== true, requiredKeys: optional === true ? [] : items.map((i) => i.key) };
  if (items.length > 0) return { ...required, keys: items.filter((i) => shows(cleanFilePath(i.path))).map((i) => i.key) };
  // without items a key is the name of its file
  return paths.includes('') ? { ...required, what: 'all' } : { ...required, keys: paths };
}

/** Whether what the container cannot do without is there. */
export function isUsable(use: ObjectUse, object: ConfigMap | Secret | undefined): boolean {
  if (object === undefined) return !use.required;
  const { data = {} } = object;
  const others = (object.kind === 'ConfigMap' ? object.binaryData : object.stringData) ?? {};
  return use.requiredKeys.every((key) => Object.hasOwn(data, key) || Object.hasOwn(others, key));
}

/** 16 hex digits over what is used of it as it is now; a Secret's spelling (data or stringData) makes no difference. */
export function contentHash(key: Uint8Array, use: ObjectUse, object: ConfigMap | Secret): string {
  const values = object.kind === 'ConfigMap' ? valuesOfMap(object, use) : valuesOfSecret(object);
  const named = new Set(use.keys);
  const used = [...values].filter(([k]) => use.what !== 'named' || named.has(k)).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHmac('sha256', key)
    .update(JSON.stringify([use.kind, use.name, used]))
    .digest('hex')
    .slice(0, 16);
}

/** Bytes are in no environment. */
function valuesOfMap({ data = {}, binaryData = {} }: ConfigMap, { what, keys }: ObjectUse): Map<string, string> {
  const bytes = what === 'texts' ? Object.entries(binaryData).filter(([key]) => keys.includes(key)) : Object.entries(binaryData);
  return new Map([
    ...bytes.map(([key, value]) => [key, `b${value}`] as const),
    ...Object.entries(data).map(([key, v]) => [key, `t${v}`] as const),
  ]);
}

function valuesOfSecret({ data = {}, stringData = {} }: Secret): Map<string, string> {
  const strings = Object.entries(stringData).map(([key, value]) => [key, Buffer.from(value).toString('base64')] as const);
  return new Map([...Object.entries(data), ...strings]);
}

/** What stands for an object that is not there. */
export const absentHash = '-';

/** By `ConfigMap/site`: its hash, or `absentHash`. */
export type Mark = ReadonlyMap<string, string>;

export const useId = ({ kind, name }: ObjectReference): string => `${kind}/${name}`;

const scheme = '1';
const keyId = (key: Uint8Array): string => createHash('sha256').update(key).digest('hex').slice(0, 8);

/** `1:9f86d081 ConfigMap/site=60303ae22b998861 Secret/db=-`. */
export const markText = (key: Uint8Array, mark: Mark): string =>
  [`${scheme}:${keyId(key)}`, ...[...mark].map(([id, hash]) => `${id}=${hash}`)].join(' ');

/** undefined: nothing of this scheme and this key. */
export function readMark(key: Uint8Array, text: string | undefined): Mark | undefined {
  const [head, ...rest] = (text ?? '').split(' ');
  if (head !== `${scheme}:${keyId(key)}`) return undefined;
  return new Map(rest.map((entry) => [entry.slice(0, entry.lastIndexOf('=')), entry.slice(entry.lastIndexOf('=') + 1)]));
}

/**
 * Something of what is used has other values than the mark says. What is missing now has no other values: what runs has the last good ones.
 * Nor has an object that the mark does not know.
 */
export const hasChanged = (mark: Mark, now: Mark): boolean =>
  [...now].some(([id, hash]) => hash !== absentHash && mark.has(id) && mark.get(id) !== hash);
