/** The kinds of volumes, in the order in which they are asked whether a volume is theirs. */
import type { DesiredPod } from '../api/desired.ts';
import type { Volume } from '../api/v1.ts';
import { type EmptyDirDeps, emptyDirKind } from './emptyDir.ts';
import { HostLooks, type HostLooksDeps } from './hostLooks.ts';
import { hostPathKind } from './hostPath.ts';
import { type ImageVolumeDeps, imageVolumeKind } from './imageVolume.ts';
import type { VolumeKind } from './kind.ts';
import { type ProjectionDeps, projectionKinds } from './projectionKind.ts';

export interface VolumeKindsDeps extends EmptyDirDeps, HostLooksDeps, ImageVolumeDeps, ProjectionDeps {
  /** Rejects when a path of the node is held back from this pod now. Left out: none is. */
  readonly checkPath?: (desired: DesiredPod, path: string) => Promise<void>;
  /** The allowed path that a hostPath of this pod may not lead out of. Left out, undefined: it may lead anywhere. */
  readonly rootOf?: (desired: DesiredPod, path: string) => string | undefined;
}

export const volumeKinds = (deps: VolumeKindsDeps): readonly VolumeKind[] => [
  hostPathKind(new HostLooks(deps), deps.checkPath, deps.rootOf),
  imageVolumeKind(deps),
  ...projectionKinds(deps),
  emptyDirKind(deps),
];

/** Throws for a volume of none of them: validation refuses it, but a stored object may come from another version. */
export function kindOf(kinds: readonly VolumeKind[], volume: Volume): VolumeKind {
  const kind = kinds.find((k) => k.handles(volume));
  if (kind === undefined) throw new Error('this version has no volumes of that kind');
  return kind;
}
