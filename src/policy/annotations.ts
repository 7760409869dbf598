// pure
/** Annotations of a Pod that are more than words: what the runtime, its plugins and CDI read from them. */
import { cdiAnnotations, cdiDevices } from '../api/deviceClasses.ts';
import { entryPath } from '../api/fieldPath.ts';
import type { Problem } from '../api/objects.ts';
import { appArmorAnnotation } from '../api/validateSecurity.ts';
import { beyond, lacks } from './denials.ts';
import type { Around } from './privileges.ts';

const seccompAnnotations = ['seccomp.security.alpha.kubernetes.io/', 'container.seccomp.security.alpha.kubernetes.io/'];

/**
 * What runtimes and their plugins take orders from, where they are set up to: containerd and CRI-O, NRI (devices, mounts), crun (hooks), runc
 * (properties of systemd units), Kata.
 */
const forRuntimes =
  /^(io\.kubernetes\.cri|io\.containerd\.|io\.katacontainers\.|run\.oci\.|org\.systemd\.property\.|org\.opencontainers\.)|^([a-z0-9-]+\.)*nri(\.[a-z0-9-]+)*\//;

/** Every annotation that asks for more than the policy allows. */
export function judgeAnnotations(value: unknown, path: string, { policy, pod }: Around): readonly Problem[] {
  if (typeof value !== 'object' || value === null) return [];
  const { source, unconfined, devices } = policy;
  return Object.entries(value).flatMap(([key, text]: [string, unknown]): readonly Problem[] => {
    const at = entryPath(path, key);
    if (key.startsWith(appArmorAnnotation))
      return unconfined || text === 'runtime/default' || isPrivileged(key.slice(appArmorAnnotation.length), policy.privileged, pod)
        ? []
        : lacks(at, policy, 'unconfined');
    if (seccompAnnotations.some((start) => key.startsWith(start)))
      return unconfined || text !== 'unconfined' ? [] : lacks(at, policy, 'unconfined');
    if (forRuntimes.test(key)) return beyond(at, policy);
    if (Object.hasOwn(cdiAnnotations({ annotations: { [key]: '' } }), key)) return judgeCdi(String(text), key, at, source, devices);
    return [];
  });
}

function judgeCdi(value: string, key: string, path: string, source: string, devices: readonly string[]): readonly Problem[] {
  if (devices.includes('*')) return [];
  const names = cdiDevices({ annotations: { [key]: value } });
  const taken = (name: string): boolean => devices.includes(name) || devices.includes(name.split('=')[0] ?? '');
  // what has no name to be judged by is not let through
  if (names.length === value.split(',').length && names.every(taken)) return [];
  return [{ path, expected: `absent: policy.${source} does not allow it (devices)`, got: 'set' }];
}

const isPrivileged = (name: string, allowed: boolean, { spec }: Around['pod']): boolean =>
  allowed && [...(spec.initContainers ?? []), ...spec.containers].some((c) => c.name === name && c.securityContext?.privileged === true);
