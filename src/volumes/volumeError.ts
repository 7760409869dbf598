/** What stands in the way of a pod's volumes, in the kubelet's words. */

export interface VolumeFailure {
  readonly volume: string;
  readonly message: string;
  /** Of its own; absent: FailedMount. */
  readonly reason?: string;
}

/** The text of the FailedMount event. */
export const failedMountText = ({ volume, message }: VolumeFailure): string =>
  `MountVolume.SetUp failed for volume "${volume}" : ${message}`;

/** Volumes that could not be made; its message is that of all of them. */
export class VolumeError extends Error {
  constructor(readonly failures: readonly VolumeFailure[]) {
    super(failures.map(failedMountText).join('; '));
  }

  /** What the pod waits for, when all of them wait for the same. */
  get reason(): string {
    const [reason = 'FailedMount', ...others] = new Set(this.failures.map((f) => f.reason));
    return others.length === 0 ? reason : 'FailedMount';
  }
}
