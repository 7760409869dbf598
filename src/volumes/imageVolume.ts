/**
 * image: the files of an image, read-only. The runtime mounts it, where it can; here it is only made sure that it can and that the image is on
 * the node, by its pull policy, before each start of a container. Mirrors kubelet v1.32 (ImageVolume), which asks no version: a runtime that
 * does not know the mount would leave an empty folder there.
 */
import { HeldBack } from '../container/heldBack.ts';
import type { VolumeKind } from './kind.ts';

export interface ImageVolumeDeps {
  /** What the runtime says of itself; an empty version: it was not asked yet. Left out: it has no such volumes. */
  readonly runtimeVersion?: () => { readonly name: string; readonly version: string };
}

/** The first containerd that mounts images. */
const first = { major: 2, minor: 1 };

export function imageVolumeKind({ runtimeVersion = () => ({ name: 'the runtime', version: '' }) }: ImageVolumeDeps): VolumeKind {
  const check = async (): Promise<void> => {
    const { name, version } = runtimeVersion();
    if (!mountsImages(name, version)) {
      const what = `${name} ${plain(version)}`.trim();
      throw new HeldBack(
        'ImageVolumesUnsupported',
        `${what} has no image volumes; containerd ${first.major}.${first.minor} and later have`,
      );
    }
  };
  return {
    handles: ({ image }) => image !== undefined,
    setUp: check,
    check,
    path: () => '',
    async image({ volume: { image = {} } }, ensure) {
      if (ensure === undefined) throw new Error('image volumes cannot be mounted here');
      const ensured = await ensure(image);
      if (!ensured.ok) throw new HeldBack(ensured.reason, ensured.message, ensured.waitMs);
      return ensured.image.id;
    },
    readOnly: true,
    managed: false,
  };
}

/** `v2.1.0-rc.0`, `1.6.20~ds1`: what follows the numbers says nothing of what it can. */
export function mountsImages(name: string, version: string): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  if (name !== 'containerd' || major === undefined || minor === undefined) return false;
  return Number(major) > first.major || (Number(major) === first.major && Number(minor) >= first.minor);
}

const plain = (version: string): string => /^v?(\d+(?:\.\d+)*)/.exec(version)?.[1] ?? version;
