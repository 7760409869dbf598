/** What a kind of volume is to the manager: one file each, listed in kinds.ts. */
import type { DesiredPod } from '../api/desired.ts';
import type { ImageVolumeSource, Volume } from '../api/v1.ts';
import type { EnsureResult } from '../container/ensureResult.ts';

/** Makes sure that an image is here. Rejects only when it was called off. */
export type EnsureImage = (source: ImageVolumeSource) => Promise<EnsureResult>;

/** One volume of one pod. */
export interface VolumePlace {
  readonly desired: DesiredPod;
  readonly volume: Volume;
  /** The pod's own folder on this node. */
  readonly pod: string;
  /** Containers of the pod run: what stands is theirs, also when it cannot be brought up to date. */
  readonly runs?: boolean;
}

export interface VolumeKind {
  handles(volume: Volume): boolean;
  /** Makes it, or finds it made. Rejects with the kubelet's text for what is wrong. */
  setUp(place: VolumePlace): Promise<void>;
  /** Brings files that follow objects and the pod up to date, in a volume that stands. Rejects when they must stay as they were. */
  refresh?(place: VolumePlace): Promise<void>;
  /** The pod is gone: what is remembered of its volumes goes as well. `pod`: its folder. */
  forget?(pod: string): void;
  /** Looked at again before each start of a container. Rejects when it cannot be mounted now. */
  check?(place: VolumePlace): Promise<void>;
  /**
   * Where the path must stay: it is opened step by step from `root`, and what is open is bound, since who writes there could turn a part of
   * the path into a link between the look and the mount. undefined: the path is mounted as it is.
   */
  within?(place: VolumePlace): { readonly root: string; readonly path: string } | undefined;
  /** The path that is mounted; '' for an image. */
  path(place: VolumePlace): string;
  /** The image that is mounted in place of a path: its id, here on the node by then. Rejects as `check`. */
  image?(place: VolumePlace, ensure: EnsureImage | undefined): Promise<string>;
  /** No container may write to it, whatever the mount says. */
  readonly readOnly: boolean;
  /** It is the agent's own, so the runtime may give it the label of the container (SELinux). */
  readonly managed: boolean;
}
