// pure
/**
 * Where the cgroups of the node, of a QoS class and of a pod are: as a list of components, which each driver spells in its own way, and as the
 * text that the runtime is given for a sandbox. Mirrors kubelet v1.32 cm/cgroup_manager_linux.go names (facts 11.2).
 */
import type { PodUid } from '../api/objects.ts';
import { type CgroupDriver, cgroupParent, cgroupPath, type QosClass } from '../api/resources.ts';

/** `['kubepods', 'burstable', 'pod1234-ab']` */
export type CgroupName = readonly string[];

export const qosClasses: readonly QosClass[] = ['Guaranteed', 'Burstable', 'BestEffort'];

/** The components of `cgroupRoot` (`/a/b`, `a/b`, `/` or nothing). */
export const rootName = (cgroupRoot: string): CgroupName => cgroupRoot.split('/').filter((part) => part !== '');

export const nodeGroup = (root: CgroupName): CgroupName => [...root, 'kubepods'];

/** Guaranteed pods are directly in the node's. */
export const qosGroup = (root: CgroupName, qos: QosClass): CgroupName =>
  qos === 'Guaranteed' ? nodeGroup(root) : [...nodeGroup(root), qos.toLowerCase()];

export const podGroup = (root: CgroupName, qos: QosClass, uid: PodUid): CgroupName => [...qosGroup(root, qos), `pod${uid}`];

/** Whose cgroup this is; undefined: it is no pod's. */
export function uidOf(name: CgroupName): PodUid | undefined {
  const last = name.at(-1) ?? '';
  return last.startsWith('pod') && last.length > 'pod'.length ? (last.slice('pod'.length) as PodUid) : undefined;
}

export interface Placing {
  readonly driver: CgroupDriver;
  readonly root: CgroupName;
  /** `cgroupsPerQOS` */
  readonly perQos: boolean;
}

/**
 * `cgroup_parent` of a pod's sandbox. Without cgroups per QoS class it is the root alone; empty leaves the place to the runtime, which a
 * runtime that asks systemd for its cgroups cannot choose by itself.
 */
export function sandboxParent({ driver, root, perQos }: Placing, qos: QosClass, uid: PodUid): string {
  if (perQos) return cgroupParent(driver, qos, uid, root);
  if (root.length > 0) return cgroupPath(driver, root);
  return driver === 'systemd' ? '/system.slice' : '';
}
