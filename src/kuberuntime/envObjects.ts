// pure
/**
 * What an environment takes from ConfigMaps and Secrets (facts 10.8). Mirrors kubelet v1.32 kubelet_pods.go makeEnvironmentVariables and the
 * texts of its errors. `binaryData` has no part in an environment. A Secret's value is in none of the errors.
 */
import { everyContainer } from '../api/containers.ts';
import type { DesiredPod } from '../api/desired.ts';
import { wrongEnvName } from '../api/names.ts';
import { environmentReferences, type ObjectLookup, volumeReferences } from '../api/references.ts';
import type { ConfigMap, Container, EnvFromSource, EnvVarSource, Secret } from '../api/v1.ts';
import type { RuntimePodStatus } from '../container/words.ts';

/** By name: those of the pod's namespace that exist now. */
export interface EnvironmentSources {
  readonly configMaps: ReadonlyMap<string, ConfigMap>;
  readonly secrets: ReadonlyMap<string, Secret>;
}

export const noSources: EnvironmentSources = { configMaps: new Map(), secrets: new Map() };

/** Looks up what the container's environment names; what does not exist is left out. Asks for nothing else. */
export function environmentSources(
  lookup: ObjectLookup,
  desired: Pick<DesiredPod, 'namespace' | 'source'>,
  container: Pick<Container, 'env' | 'envFrom'>,
): EnvironmentSources {
  const references = environmentReferences(container);
  if (references.length === 0) return noSources;
  const configMaps = new Map<string, ConfigMap>();
  const secrets = new Map<string, Secret>();
  for (const { kind, name } of references) {
    const object = lookup(kind, desired.namespace, name, desired.source);
    if (object?.kind === 'ConfigMap') configMaps.set(name, object);
    if (object?.kind === 'Secret') secrets.set(name, object);
  }
  return { configMaps, secrets };
}

/**
 * The names and values of one envFrom entry, prefix and all; nothing when the object may be missing and is. A name that no environment can
 * have is left out. Throws when the object is missing, or a value of it is no text.
 */
export function valuesFrom(from: EnvFromSource, sources: EnvironmentSources, namespace: string): [string, string][] {
  const { configMapRef, secretRef, prefix = '' } = from;
  const values =
    configMapRef !== undefined
      ? found('configmap', configMapRef, sources.configMaps)?.data
      : secretRef !== undefined
        ? textsOf(found('secret', secretRef, sources.secrets), namespace)
        : undefined;
  return Object.entries(values ?? {})
    .map(([key, value]): [string, string] => [prefix + key, value])
    .filter(([name]) => wrongEnvName(name) === undefined);
}

/**
 * The value a key reference stands for; undefined when it may be missing and is: the variable then keeps what it had. Throws when object or
 * key is missing, or the value is no text.
 */
export function keyValue(from: EnvVarSource, sources: EnvironmentSources, namespace: string): string | undefined {
  const { configMapKeyRef: map, secretKeyRef: secret } = from;
  if (map !== undefined) {
    const data = found('configmap', map, sources.configMaps)?.data ?? {};
    if (Object.hasOwn(data, map.key)) return data[map.key];
    if (map.optional === true) return undefined;
    throw new Error(`couldn't find key ${map.key} in ConfigMap ${namespace}/${map.name ?? ''}`);
  }
  if (secret === undefined) return undefined;
  const object = found('secret', secret, sources.secrets);
  const value = object === undefined ? undefined : secretText(object, secret.key, namespace);
  if (value !== undefined || secret.optional === true) return value;
  throw new Error(`couldn't find key ${secret.key} in Secret ${namespace}/${secret.name ?? ''}`);
}

function found<T>(
  kind: 'configmap' | 'secret',
  { name = '', optional }: { readonly name?: string; readonly optional?: boolean },
  objects: ReadonlyMap<string, T>,
): T | undefined {
  const object = objects.get(name);
  if (object === undefined && optional !== true) throw new Error(`${kind} "${name}" not found`);
  return object;
}

const keysOf = ({ data = {}, stringData = {} }: Secret): string[] => [...new Set([...Object.keys(data), ...Object.keys(stringData)])];

function textsOf(secret: Secret | undefined, namespace: string): Readonly<Record<string, string>> {
  if (secret === undefined) return {};
  return Object.fromEntries(keysOf(secret).map((key) => [key, secretText(secret, key, namespace) ?? '']));
}

/**
 * stringData wins over data. No environment can hold a zero byte, nor CRI what is no UTF-8: the runtime would refuse it with the value in
 * its words.
 */
function secretText(secret: Secret, key: string, namespace: string): string | undefined {
  const { data = {}, stringData = {} } = secret;
  const text = Object.hasOwn(stringData, key) ? stringData[key] : Object.hasOwn(data, key) ? decoded(data[key] ?? '') : undefined;
  if (text === undefined && !Object.hasOwn(data, key)) return undefined;
  if (text === undefined || text.includes('\0')) {
    throw new Error(`the value of key ${key} in Secret ${namespace}/${secret.metadata.name} is no text, so it cannot be in an environment`);
  }
  return text;
}

/** undefined: bytes that are no UTF-8. */
function decoded(base64: string): string | undefined {
  try {
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined; // that is the answer
  }
}

/** By name: the Secrets that a container may repeat, those of its environment and of the volumes that it mounts. */
export function repeatableSecrets(
  lookup: ObjectLookup,
  { pod, namespace, source }: Pick<DesiredPod, 'pod' | 'namespace' | 'source'>,
  container: Pick<Container, 'env' | 'envFrom' | 'volumeMounts'>,
): Pick<EnvironmentSources, 'secrets'> {
  const mounted = new Set((container.volumeMounts ?? []).map((m) => m.name));
  const volumes = mounted.size === 0 ? [] : (pod.spec.volumes ?? []).filter((v) => mounted.has(v.name));
  const secrets = new Map<string, Secret>();
  for (const { kind, name } of [...environmentReferences(container), ...volumes.flatMap(volumeReferences)]) {
    const object = kind === 'Secret' ? lookup(kind, namespace, name, source) : undefined;
    if (object?.kind === 'Secret') secrets.set(name, object);
  }
  return { secrets };
}

const shortest = 4;
/** Of a value of several lines each line is hidden that cannot be an ordinary word. */
const shortestLine = 8;
const linesOf = (value: string): string[] =>
  value.includes('\n')
    ? value
        .split('\n')
        .map((l) => l.trim())
        .filter((l) => l.length >= shortestLine)
    : [];

/**
 * A text without the values of these Secrets, as they are or as a runtime quotes them: what a runtime says of a failure may repeat an
 * environment or a command. Of values too short to be told from ordinary words only whole words are hidden.
 */
export function withoutSecrets(text: string, { secrets }: Pick<EnvironmentSources, 'secrets'>): string {
  const values = [...secrets.values()].flatMap((secret) =>
    keysOf(secret).flatMap((key) => secret.stringData?.[key] ?? decoded(secret.data?.[key] ?? '') ?? []),
  );
  const written = new Set(values.filter((v) => v !== '').flatMap((v) => [v, v.trim(), JSON.stringify(v).slice(1, -1), ...linesOf(v)]));
  written.delete('');
  let out = text;
  // a value that holds another one goes first
  for (const value of [...written].sort((a, b) => b.length - a.length)) {
    if (value.length >= shortest) out = out.replaceAll(value, '…');
    else out = out.replace(new RegExp(`(?<![\\p{L}\\p{N}])${escaped(value)}(?![\\p{L}\\p{N}])`, 'gu'), '…');
  }
  return out;
}

/** What the runtime shows of a pod, without the values of the Secrets that each container has in its environment or its volumes. */
export function statusWithoutSecrets(lookup: ObjectLookup, desired: DesiredPod, status: RuntimePodStatus): RuntimePodStatus {
  // looked up of each, though few have something to hide: who remembers former values must have seen them
  const sources = new Map(everyContainer(desired.pod.spec).map((s) => [s.name, repeatableSecrets(lookup, desired, s)]));
  const hidden = status.containers.map((c) => {
    const own = sources.get(c.name);
    const message = c.message === '' || own === undefined ? c.message : withoutSecrets(c.message, own);
    return message === c.message ? c : { ...c, message };
  });
  return hidden.every((c, i) => c === status.containers[i]) ? status : { ...status, containers: hidden };
}

const escaped = (literal: string): string => literal.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
