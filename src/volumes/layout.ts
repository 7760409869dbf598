// pure
/**
 * Where a pod's things lie on this node (facts 15.6): paths that are written on running containers, so they are a contract with every later
 * release. A `/` in the name of a volume kind is written `~`.
 */
import type { PodUid } from '../api/objects.ts';

/** Folders of a pod, by the names that other rooms and later releases know them under. */
export const volumesFolder = 'volumes';
export const subPathsFolder = 'volume-subpaths';
const markersFolder = 'plugins';
export const containersFolder = 'containers';
export const hostsName = 'etc-hosts';
export const resolvName = 'etc-resolv.conf';

export const emptyDirKind = 'kubernetes.io~empty-dir';
export const configMapFolder = 'kubernetes.io~configmap';
export const secretFolder = 'kubernetes.io~secret';
export const projectedFolder = 'kubernetes.io~projected';
export const downwardFolder = 'kubernetes.io~downward-api';

/** Kinds whose content is the pod's own and goes with it. */
export const ownKinds: ReadonlySet<string> = new Set([emptyDirKind, configMapFolder, secretFolder, projectedFolder, downwardFolder]);

export const podFolder = (root: string, uid: PodUid): string => `${root}/${uid}`;

/** A UID as the agent gives them; anything else is no folder of ours and no part of a path. */
export const isUid = (name: string): boolean => /^[A-Za-z0-9][-A-Za-z0-9_]{0,127}$/.test(name);

/** The folder of one volume. `kind` as in `emptyDirKind`. */
export const volumeFolder = (pod: string, kind: string, volume: string): string => `${pod}/${volumesFolder}/${kind}/${volume}`;

/** The folder whose `ready` file says that a volume was made whole. */
export const markerFolder = (pod: string, kind: string, volume: string): string => `${pod}/${markersFolder}/${kind}/${volume}`;

/** What a subPath is bound to: the index is the place of the mount in the container's list. */
export const subPathFolder = (pod: string, volume: string, container: string): string => `${pod}/${subPathsFolder}/${volume}/${container}`;

/** Whether a mount at this path below a pod's folder is what a subPath was bound to. */
export function isSubPathMount(below: string): boolean {
  const parts = below.split('/');
  return parts[0] === subPathsFolder && parts.length === 4;
}

/** Whether a mount at this path below a pod's folder was made by this room: a volume itself or a subPath. */
export function isOurMount(below: string): boolean {
  const parts = below.split('/');
  return (parts[0] === volumesFolder && parts.length === 3) || isSubPathMount(below);
}
