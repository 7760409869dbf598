/** What a kind of volume is to the manager: one file each, listed in kinds.ts. */
import type { DesiredPod } from '../api/desired.ts';
import type { Volume } from '../api/v1.ts';

/** One volume of one pod. */
export interface VolumePlace {
  readonly desired: DesiredPod;
  readonly volume: Volume;
  /** The pod's own folder on this node. */
  readonly pod: string;
}

export interface VolumeKind {
  handles(volume: Volume): boolean;
  /** Makes it, or finds it made. Rejects with the kubelet's text for what is wrong. */
  setUp(place: VolumePlace): Promise<void>;
  /** Looked at again before each start of a container. Rejects when it cannot be mounted now. */
  check?(place: VolumePlace): Promise<void>;
  /** The path that is mounted. */
  path(place: VolumePlace): string;
  /** No container may write to it, whatever the mount says. */
  readonly readOnly: boolean;
  /** It is the agent's own, so the runtime may give it the label of the container (SELinux). */
  readonly managed: boolean;
}
