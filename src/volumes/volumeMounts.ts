// pure
/** What a volumeMount says to the runtime: where, whether read-only, how mounts propagate (facts 10.11). */
import { everyContainer } from '../api/containers.ts';
import type { Container, EphemeralContainer, Pod, VolumeMount } from '../api/v1.ts';
import { expand } from '../container/expand.ts';
import type { Mount } from '../container/runtime.ts';

/** The path in the container: absolute, without what says nothing. */
export function containerPath(path: string): string {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  return `/${parts.join('/')}`;
}

/** Volumes that a container of the pod mounts; no other is ever made. */
export function mountedVolumes({ spec }: Pod): ReadonlySet<string> {
  return new Set(everyContainer(spec).flatMap((c) => (c.volumeMounts ?? []).map((m) => m.name)));
}

export const mountsAt = (container: Container | EphemeralContainer, path: string): boolean =>
  (container.volumeMounts ?? []).some((m) => containerPath(m.mountPath) === path);

/** Everything of the runtime's mount but its source. Throws when the runtime cannot do what is asked. */
export function mountWords(
  mount: VolumeMount,
  o: { readonly volumeReadOnly: boolean; readonly relabel: boolean; readonly recursiveReadOnly: boolean },
): Omit<Mount, 'hostPath'> {
  const propagation = propagationOf(mount);
  return {
    containerPath: mount.mountPath.startsWith('/') ? mount.mountPath : `/${mount.mountPath}`,
    readonly: mount.readOnly === true || o.volumeReadOnly,
    ...(propagation !== undefined && { propagation }),
    ...(isRecursive(mount, o.recursiveReadOnly) && { recursiveReadOnly: true }),
    ...(o.relabel && { selinuxRelabel: true }),
  };
}

function propagationOf({ mountPropagation = 'None' }: VolumeMount): Mount['propagation'] {
  switch (mountPropagation) {
    case 'None':
      return undefined;
    case 'HostToContainer':
      return 'HOST_TO_CONTAINER';
    case 'Bidirectional':
      return 'BIDIRECTIONAL';
  }
}

function isRecursive({ name, recursiveReadOnly = 'Disabled' }: VolumeMount, supported: boolean): boolean {
  switch (recursiveReadOnly) {
    case 'Disabled':
      return false;
    case 'IfPossible':
      return supported;
    case 'Enabled':
      if (supported) return true;
      throw new Error(`volume "${name}" requested recursive read-only mode, but it is not supported by the runtime`);
  }
}

/**
 * What of the volume is mounted: relative, without `..`; '' for all of it. `env` looks up the container's environment, in which everything
 * that subPathExpr names must have a value. Throws for what validation refuses too, since an expression is known only now, in the kubelet's
 * words.
 */
export function subPathOf(
  { subPath = '', subPathExpr = '' }: VolumeMount,
  env: ((name: string) => string | undefined) | undefined,
): string {
  const path = subPathExpr === '' ? subPath : expanded(subPathExpr, env);
  if (path.startsWith('/')) throw new Error(`error SubPath \`${path}\` must not be an absolute path`);
  if (path.includes('\0')) throw new Error('unable to provision SubPath: it has a NUL byte in it');
  if (path.split('/').includes('..')) throw new Error(`unable to provision SubPath \`${path}\`: must not contain '..'`);
  return path;
}

function expanded(text: string, env: ((name: string) => string | undefined) | undefined): string {
  if (env === undefined) throw new Error('subPathExpr needs the environment of a container');
  const missing = new Set<string>();
  const path = expand(text, (name) => {
    const value = env(name) ?? '';
    if (value === '') missing.add(name);
    return value;
  });
  if (missing.size > 0) throw new Error(`missing value for ${[...missing].sort().join(', ')}`);
  return path;
}
