// pure
/** The volumeMounts of a container's status (facts 9.4): what the manifest says, with what became of recursiveReadOnly. */
import type { RecursiveReadOnlyMode, VolumeMount } from '../api/v1.ts';

export interface VolumeMountStatus {
  readonly name: string;
  readonly mountPath: string;
  readonly readOnly?: true;
  /** Where readOnly is true; IfPossible has become one of the others. */
  readonly recursiveReadOnly?: RecursiveReadOnlyMode;
}

/** `recursiveReadOnly`: the pod's runtime handler can do it. undefined: the container mounts nothing, and the field is absent. */
export function volumeMountStatuses(
  { volumeMounts = [] }: { readonly volumeMounts?: readonly VolumeMount[] },
  recursiveReadOnly: boolean,
): readonly VolumeMountStatus[] | undefined {
  if (volumeMounts.length === 0) return undefined;
  return volumeMounts.map(({ name, mountPath, readOnly, recursiveReadOnly: asked = 'Disabled' }) => {
    if (readOnly !== true) return { name, mountPath };
    const able = asked === 'IfPossible' ? recursiveReadOnly : asked === 'Enabled';
    return { name, mountPath, readOnly: true, recursiveReadOnly: able ? 'Enabled' : 'Disabled' };
  });
}
