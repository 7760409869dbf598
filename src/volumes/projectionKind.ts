/**
 * configMap, secret, downwardAPI and projected volumes: files from objects and from the pod, which follow them while the pod runs. All but
 * configMap lie in memory only: what a Secret holds never comes to lie on the card, and when there is no memory for it there is no volume.
 * Mirrors kubelet v1.32 volume/configmap, secret, downwardapi, projected (facts 15.5), without its remount every minute: the content is known
 * by its fingerprint, and the disk is looked at only when that changes, and once by each agent.
 */
import { type FileHandle, mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { NodeResources } from '../api/downward.ts';
import { type ObjectLookup, volumeReferences } from '../api/references.ts';
import type { ConfigMap, Pod, PodFSGroupChangePolicy, Secret, Volume } from '../api/v1.ts';
import type { Clock } from '../world/clock.ts';
import { codeOf } from '../world/errno.ts';
import { isWritten, makeFolders, writeFiles } from './atomicWriter.ts';
import { openFolder } from './descriptor.ts';
import { mountInMemory } from './emptyDir.ts';
import type { VolumeKind, VolumePlace } from './kind.ts';
import { configMapFolder, downwardFolder, projectedFolder, secretFolder, volumeFolder } from './layout.ts';
import type { Mounter } from './mount.ts';
import { giveToGroup } from './ownership.ts';
import { fingerprint, nestedMounts, ownLookup, type ProjectedFiles, projectedFiles } from './projection.ts';

export interface ProjectionDeps {
  readonly clock: Clock;
  readonly mounter: Mounter;
  readonly nodeMemoryBytes: number;
  readonly nodeCpus?: number;
  readonly nodeStorageBytes?: () => number;
  /** Left out: there are no objects. */
  readonly objects?: ObjectLookup;
}

/** Nobody writes to the volume but the agent. */
const readOnlyBits = 0o440;

/** Room for two moments of a few objects of the largest size; only what is written takes memory. */
const tmpfsBytes = 64 * 2 ** 20;

interface Sort {
  readonly folder: string;
  readonly inMemory: boolean;
  handles(volume: Volume): boolean;
}

const sorts: readonly Sort[] = [
  { folder: configMapFolder, inMemory: false, handles: (v) => v.configMap !== undefined },
  { folder: secretFolder, inMemory: true, handles: (v) => v.secret !== undefined },
  { folder: projectedFolder, inMemory: true, handles: (v) => v.projected !== undefined },
  { folder: downwardFolder, inMemory: true, handles: (v) => v.downwardAPI !== undefined },
];

/** What is known to be in a volume, and what it was made from. */
interface Known {
  readonly fingerprint: string;
  readonly pod: Pod;
  readonly objects: readonly (ConfigMap | Secret | undefined)[];
}

export function projectionKinds(deps: ProjectionDeps): readonly VolumeKind[] {
  const noSwap = { supported: true };
  return sorts.map((sort) => projectionKind(sort, deps, noSwap));
}

function projectionKind({ folder, inMemory, handles }: Sort, deps: ProjectionDeps, noSwap: { supported: boolean }): VolumeKind {
  /** By the pod's folder, then by volume. */
  const known = new Map<string, Map<string, Known>>();
  const path = ({ pod, volume }: VolumePlace): string => volumeFolder(pod, folder, volume.name);
  const knownOf = ({ pod, volume }: VolumePlace): Known | undefined => known.get(pod)?.get(volume.name);

  const remember = ({ pod, volume }: VolumePlace, what: Known): void => {
    const of = known.get(pod) ?? new Map<string, Known>();
    known.set(pod, of.set(volume.name, what));
  };

  const isFresh = (place: VolumePlace, objects: Known['objects']): boolean => {
    const last = knownOf(place);
    return last !== undefined && last.pod === place.desired.pod && objects.every((o, i) => o === last.objects[i]);
  };

  /** Brings the files up to date. Rejects with what is missing, before anything is made or changed. */
  const update = async (place: VolumePlace): Promise<void> => {
    const { desired, volume } = place;
    const get = ownLookup(deps.objects ?? (() => undefined), desired);
    const objects = volumeReferences(volume).map(({ kind, name }) => get(kind, name));
    if (isFresh(place, objects)) return;
    const files = projectedFiles(volume, desired.pod, get, nodeResources(deps));
    const now = { fingerprint: fingerprint(files), pod: desired.pod, objects };
    if (knownOf(place)?.fingerprint !== now.fingerprint) await write(place, files);
    remember(place, now);
  };

  const write = async (place: VolumePlace, files: ProjectedFiles): Promise<void> => {
    const dir = path(place);
    await mkdir(dirname(dir), { recursive: true, mode: 0o750 });
    await mkdir(dir).catch((e: unknown) => {
      if (codeOf(e) !== 'EEXIST') throw e; // made before, or before a crash
    });
    const mounted = async (): Promise<boolean> => (await deps.mounter.mountPoints()).includes(dir);
    if (inMemory && !(await mounted())) {
      const bytes = Math.min(tmpfsBytes, Math.floor(deps.nodeMemoryBytes / 4));
      await mountInMemory(deps.mounter, dir, { type: 'tmpfs', options: [`size=${bytes}`] }, noSwap);
    }
    const root = await openFolder(dir);
    if (root === undefined) throw new Error('its folder went away while it was made');
    try {
      // asked after it was opened: nothing that is written into it can come to lie on the card
      if (inMemory && !(await mounted())) throw new Error('its file system in memory went away');
      await writeInto(root, place, files);
    } finally {
      await root.close();
    }
  };

  const writeInto = async (root: FileHandle, place: VolumePlace, files: ProjectedFiles): Promise<void> => {
    const { pod } = place.desired;
    const { fsGroup } = pod.spec.securityContext ?? {};
    const { mode } = await root.stat();
    if ((mode & 0o777) !== 0o777) await root.chmod((mode & 0o7000) | 0o777);
    const nested = nestedMounts(place.volume.name, pod);
    await makeFolders(root, nested);
    const kept = new Set(nested.map((p) => p.split('/')[0] ?? p));
    const give = async (made: string, policy: PodFSGroupChangePolicy): Promise<void> => {
      if (fsGroup !== undefined) await giveToGroup(made, { fsGroup, policy, fileBits: readOnlyBits });
    };
    await writeFiles(root, files, { now: deps.clock.now(), kept, give: (made) => give(made, 'Always') });
    // once: what is made in it later has its group
    await give(path(place), 'OnRootMismatch');
  };

  const stands = async (place: VolumePlace): Promise<boolean> => {
    const dir = path(place);
    const root = await openFolder(dir);
    if (root === undefined) return false;
    try {
      return (await isWritten(root)) && (!inMemory || (await deps.mounter.mountPoints()).includes(dir));
    } finally {
      await root.close();
    }
  };

  return {
    handles,
    path,
    readOnly: true,
    managed: true,
    async setUp(place) {
      try {
        await update(place);
      } catch (e) {
        if (place.runs !== true || !(await stands(place))) throw e;
      }
    },
    refresh: update,
    forget: (pod) => void known.delete(pod),
  };
}

const nodeResources = ({ nodeMemoryBytes, nodeCpus, nodeStorageBytes }: ProjectionDeps): NodeResources => ({
  nodeMemoryBytes,
  ...(nodeCpus !== undefined && { nodeCpus }),
  ...(nodeStorageBytes !== undefined && { nodeStorageBytes: nodeStorageBytes() }),
});
