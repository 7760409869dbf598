/**
 * What is mounted into one attempt of a container, in the order the kubelet has it: volumes, /etc/hosts, the file for last words; then our
 * resolv.conf. Mirrors kubelet v1.32 kubelet_pods.go makeMounts (facts 10.9–10.11).
 */
import type { DesiredPod } from '../api/desired.ts';
import type { Container, EphemeralContainer, VolumeMount } from '../api/v1.ts';
import type { Mount } from '../container/runtime.ts';
import { codeOf } from '../world/errno.ts';
import type { EtcFiles } from './etcFiles.ts';
import type { EnsureImage, VolumeKind, VolumePlace } from './kind.ts';
import { kindOf } from './kinds.ts';
import { containersFolder, subPathFolder } from './layout.ts';
import type { Mounter } from './mount.ts';
import { bindSubPath } from './subPath.ts';
import { makeTerminationLog } from './terminationLog.ts';
import { mountsAt, mountWords, subPathOf } from './volumeMounts.ts';

export interface ContainerMountsDeps {
  readonly mounter: Mounter;
  readonly kinds: readonly VolumeKind[];
  readonly etc: EtcFiles;
  readonly recursiveReadOnly: (handler: string) => boolean;
  readonly seLinux: () => boolean;
}

export interface MountOptions {
  /** The pod's runtime handler; left out: the default one. */
  readonly handler?: string;
  /** Looks up the container's environment. Left out: subPathExpr cannot be mounted. */
  readonly env?: (name: string) => string | undefined;
  /** Left out: image volumes cannot be mounted. */
  readonly ensureImage?: EnsureImage;
}

/** One attempt of one container. */
export interface Attempt {
  readonly desired: DesiredPod;
  /** The pod's own folder on this node. */
  readonly pod: string;
  readonly container: Container | EphemeralContainer;
  readonly attempt: number;
  readonly podIps: readonly string[];
  /** Volumes that stand. */
  readonly ready: ReadonlySet<string>;
}

/** Rejects with why the container cannot be made. */
export async function containerMounts(deps: ContainerMountsDeps, of: Attempt, o: MountOptions): Promise<readonly Mount[]> {
  const { desired, container, attempt, podIps, pod } = of;
  const mounts: Mount[] = [];
  const relabelled = new Set<string>();
  for (const [index, mount] of (container.volumeMounts ?? []).entries())
    mounts.push(await volumeMount(deps, of, mount, index, relabelled, o));
  const relabel = deps.seLinux() ? { selinuxRelabel: true } : {};
  const { hostNetwork = false } = desired.pod.spec;
  if ((podIps.length > 0 || hostNetwork) && !mountsAt(container, '/etc/hosts'))
    mounts.push({ containerPath: '/etc/hosts', hostPath: await deps.etc.hosts(desired, podIps), readonly: false, ...relabel });
  const { terminationMessagePath = '', securityContext } = container;
  if (terminationMessagePath !== '') {
    const hostPath = await makeTerminationLog(`${pod}/${containersFolder}/${container.name}`, attempt).catch(noneOnFullCard);
    if (hostPath !== undefined) mounts.push({ containerPath: terminationMessagePath, hostPath, readonly: false, ...relabel });
  }
  if (!mountsAt(container, '/etc/resolv.conf')) {
    // as the runtime mounts its own: a container with a read-only root cannot change it
    const readonly = securityContext?.readOnlyRootFilesystem === true;
    mounts.push({ containerPath: '/etc/resolv.conf', hostPath: await deps.etc.resolv(desired), readonly, ...relabel });
  }
  return mounts;
}

/** As the kubelet: a container whose last words have no place starts all the same. */
function noneOnFullCard(e: unknown): undefined {
  if (!['ENOSPC', 'EDQUOT', 'EROFS'].includes(codeOf(e))) throw e;
}

async function volumeMount(
  deps: ContainerMountsDeps,
  { desired, pod, container, ready }: Attempt,
  mount: VolumeMount,
  index: number,
  relabelled: Set<string>,
  o: MountOptions,
): Promise<Mount> {
  const volume = desired.pod.spec.volumes?.find((v) => v.name === mount.name);
  if (volume === undefined) throw new Error(`cannot find volume "${mount.name}" to mount into container "${container.name}"`);
  if (!ready.has(volume.name)) throw new Error(`volume "${volume.name}" is not set up`);
  const kind = kindOf(deps.kinds, volume);
  const place: VolumePlace = { desired, volume, pod };
  // a disk may have been unplugged since the pod was set up
  await kind.check?.(place);
  const image = await kind.image?.(place, o.ensureImage);
  const subPath = subPathOf(mount, o.env);
  const relabel = kind.managed && deps.seLinux() && !relabelled.has(volume.name);
  if (relabel) relabelled.add(volume.name);
  const recursiveReadOnly = deps.recursiveReadOnly(o.handler ?? '');
  const words = mountWords(mount, { volumeReadOnly: kind.readOnly, relabel, recursiveReadOnly });
  if (image !== undefined) {
    if (subPath !== '') throw new Error(`volume "${volume.name}" is an image, which cannot be mounted in part`);
    return { ...words, hostPath: '', image };
  }
  const within = kind.within?.(place);
  if (subPath === '' && within === undefined) return { ...words, hostPath: kind.path(place) };
  const hostPath = `${subPathFolder(pod, volume.name, container.name)}/${index}`;
  try {
    const inside = within === undefined ? subPath : [within.path, subPath].filter((part) => part !== '').join('/');
    await bindSubPath(deps.mounter, within?.root ?? kind.path(place), inside, hostPath, subPath === '');
  } catch (e) {
    const what = subPath === '' ? 'hostPath' : 'subPath';
    const text = `failed to prepare ${what} for volumeMount "${mount.name}" of container "${container.name}"`;
    // the words of the system name parts of a path, which may be parts of a Secret's value
    throw new Error(text, { cause: mount.subPathExpr ? new Error(codeOf(e)) : e });
  }
  return { ...words, hostPath };
}
