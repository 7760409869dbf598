// pure
/** Expected outcomes are data: one result for each thing a sync did or could not do. */
export type SyncAction =
  | 'OpenGates'
  | 'CreatePodCgroup'
  | 'UpdatePodCgroup'
  | 'MountVolumes'
  | 'StartContainer'
  | 'KillContainer'
  | 'CreatePodSandbox'
  | 'ConfigPodSandbox'
  | 'KillPodSandbox';

export interface SyncResult {
  readonly action: SyncAction;
  /** Container name, or the pod's for gates, volumes and sandbox. */
  readonly target: string;
  /** Kubernetes' own reason (`CrashLoopBackOff`, `ErrImagePull`, `CreateContainerError` …) and the text for people. */
  readonly error?: { readonly reason: string; readonly message: string };
  /** The action waits for its back-off: milliseconds from now. */
  readonly waitMs?: number;
}
