/**
 * emptyDir: a folder of the pod's own, on the card or in memory, as long as the pod instance lives. Mirrors kubelet v1.32 volume/emptydir
 * (facts 15.3): a `ready` file says that it was made whole, and a tmpfs that a reboot took is mounted anew. A size limit on the card is
 * eviction's to keep.
 */
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { quantityValue } from '../api/quantity.ts';
import { podResources } from '../api/resources.ts';
import type { EmptyDirVolumeSource, Pod } from '../api/v1.ts';
import { codeOf } from '../world/errno.ts';
import { openFolder, openPlace, pathOf } from './descriptor.ts';
import type { VolumeKind, VolumePlace } from './kind.ts';
import { emptyDirKind as folder, markerFolder, volumeFolder } from './layout.ts';
import type { Mounter } from './mount.ts';
import { giveToGroup } from './ownership.ts';

const readWrite = 0o660;

export interface EmptyDirDeps {
  readonly mounter: Mounter;
  readonly nodeMemoryBytes: number;
}

export function emptyDirKind(deps: EmptyDirDeps): VolumeKind {
  const noSwap = { supported: true };
  const pathOfVolume = ({ pod, volume }: VolumePlace): string => volumeFolder(pod, folder, volume.name);
  return {
    // a volume that names no source is one of these
    handles: (volume) => Object.keys(volume).every((key) => key === 'name' || key === 'emptyDir'),
    path: pathOfVolume,
    readOnly: false,
    managed: true,
    async setUp(place) {
      const { volume, desired, pod } = place;
      const { emptyDir = {}, name } = volume;
      const { medium = '' } = emptyDir;
      const dir = pathOfVolume(place);
      const marker = markerFolder(pod, folder, name);
      const inMemory = memoryMount(desired.pod, emptyDir, deps.nodeMemoryBytes);
      const made = await isThere(dir);
      const mounted = inMemory !== undefined && made && (await deps.mounter.mountPoints()).includes(dir);
      if (made && (await isThere(`${marker}/ready`)) && (medium === '' || mounted)) return;
      await makeFolder(dir);
      if (inMemory !== undefined && !mounted) await mountInMemory(deps.mounter, dir, inMemory, noSwap);
      const { fsGroup, fsGroupChangePolicy: policy } = desired.pod.spec.securityContext ?? {};
      if (fsGroup !== undefined) await giveToGroup(dir, { fsGroup, policy, fileBits: readWrite });
      await mkdir(marker, { recursive: true, mode: 0o750 });
      await writeFile(`${marker}/ready`, '', { mode: 0o640 });
    },
  };
}

async function isThere(path: string): Promise<boolean> {
  const place = await openPlace(path);
  await place?.close();
  return place !== undefined;
}

/** Open to every user of the pod, whatever the agent's umask is. */
async function makeFolder(dir: string): Promise<void> {
  await mkdir(dirname(dir), { recursive: true, mode: 0o750 });
  await mkdir(dir, { mode: 0o777 }).catch((e: unknown) => {
    if (codeOf(e) !== 'EEXIST') throw e; // made before a crash
  });
  const open = await openFolder(dir);
  if (open === undefined) throw new Error(`${dir} went away while it was made`);
  try {
    await chmod(pathOf(open), 0o777);
  } finally {
    await open.close();
  }
}

export interface MemoryMount {
  readonly type: 'tmpfs' | 'hugetlbfs';
  readonly options: readonly string[];
}

/** How the medium is mounted; undefined: it is the card. Throws for a medium nobody knows. */
export function memoryMount(pod: Pod, source: EmptyDirVolumeSource, nodeMemoryBytes: number): MemoryMount | undefined {
  const { medium = '' } = source;
  if (medium === '') return undefined;
  if (medium === 'Memory') return { type: 'tmpfs', options: [`size=${tmpfsBytes(pod, source, nodeMemoryBytes)}`] };
  if (medium === 'HugePages' || medium.startsWith('HugePages-')) {
    // the kernel reads 2M, not 2Mi
    return { type: 'hugetlbfs', options: [`pagesize=${pageSize(pod, medium).replace(/i$/, '')}`] };
  }
  throw new Error(`unknown storage medium "${medium}"`);
}

/** The least of the node's memory, the pod's limit where every container has one, and the volume's own limit. */
function tmpfsBytes(pod: Pod, { sizeLimit }: EmptyDirVolumeSource, nodeMemoryBytes: number): number {
  const { memoryBytes } = podResources(pod, { enforceCpuLimits: false, periodUs: 100_000 });
  return Math.min(...[nodeMemoryBytes, memoryBytes, quantityValue(sizeLimit)].filter((n) => n !== undefined && n > 0).map(Number));
}

function pageSize(pod: Pod, medium: string): string {
  const prefix = 'hugepages-';
  const all = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
  const sizes = new Set(
    all
      .flatMap(({ resources = {} }) => Object.keys({ ...resources.requests, ...resources.limits }))
      .filter((name) => name.startsWith(prefix))
      .map((name) => name.slice(prefix.length)),
  );
  const named = medium.slice('HugePages-'.length);
  if (named !== '') {
    if (sizes.has(named)) return named;
    throw new Error(`medium ${medium} needs a container that asks for hugepages-${named}`);
  }
  const [only, ...others] = sizes;
  if (only === undefined || others.length > 0)
    throw new Error(`medium HugePages needs containers that ask for huge pages of one size, and they ask for ${sizes.size}`);
  return only;
}

/** What lies in memory must not come to lie on the card; kernels before 6.4 cannot promise that. */
export async function mountInMemory(
  mounter: Mounter,
  dir: string,
  { type, options }: MemoryMount,
  noSwap: { supported: boolean },
): Promise<void> {
  if (type === 'tmpfs' && noSwap.supported) {
    try {
      return await mounter.mount(type, dir, [...options, 'noswap']);
    } catch {
      await mounter.mount(type, dir, options); // what is wrong besides the option, this says
      noSwap.supported = false;
      return;
    }
  }
  await mounter.mount(type, dir, options);
}
