// pure
/**
 * The pod as the runtime sees it: sandboxes and containers as plain data. Written by cri/ at the sill (nanoseconds become WallTime
 * milliseconds there), read by everybody. Order is by attempt, never by time: a Pi's clock may jump.
 */
import type { PodUid } from '../api/objects.ts';
import type { WallTime } from '../world/clock.ts';

export type SandboxId = string & { readonly kind: 'SandboxId' };
export type ContainerId = string & { readonly kind: 'ContainerId' };

export type SandboxState = 'ready' | 'notready';
export type ContainerState = 'created' | 'running' | 'exited' | 'unknown';
export type NamespaceMode = 'POD' | 'CONTAINER' | 'NODE' | 'TARGET';

export interface Sandbox {
  readonly id: SandboxId;
  readonly name: string;
  readonly namespace: string;
  readonly uid: PodUid;
  readonly attempt: number;
  readonly state: SandboxState;
  readonly createdAt: WallTime;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface Container {
  readonly id: ContainerId;
  readonly sandboxId: SandboxId;
  readonly name: string;
  /** metadata.attempt: the restart count this record was created with. */
  readonly attempt: number;
  /** The image text of the record (user specified, where the runtime keeps it). */
  readonly image: string;
  readonly imageRef: string;
  readonly state: ContainerState;
  readonly createdAt: WallTime;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** What one list of the runtime shows of a pod (no inspection yet). Newest (highest attempt) first. */
export interface RuntimePod {
  readonly uid: PodUid;
  readonly name: string;
  readonly namespace: string;
  readonly sandboxes: readonly Sandbox[];
  readonly containers: readonly Container[];
}

export interface SandboxStatus extends Sandbox {
  readonly networkMode: NamespaceMode;
  /** Absent when the runtime reported no network block at all. */
  readonly network?: { readonly ip: string; readonly additionalIps: readonly string[] };
}

export interface ContainerStatus extends Container {
  readonly startedAt?: WallTime;
  readonly finishedAt?: WallTime;
  readonly exitCode: number;
  readonly reason: string;
  readonly message: string;
  readonly logPath: string;
  /** What is mounted into it from the host, as it was created. */
  readonly mounts: readonly { readonly containerPath: string; readonly hostPath: string }[];
  /** The CPUs it may use, as a list, where it was kept to some and the runtime says so. */
  readonly cpusetCpus?: string;
}

/** What inspection showed of a pod. Newest (highest attempt) first. */
export interface RuntimePodStatus {
  readonly uid: PodUid;
  readonly name: string;
  readonly namespace: string;
  /** Addresses of the newest sandbox while it is ready; kept from before when a later inspection shows none (kubelet: IP retention). */
  readonly ips: readonly string[];
  readonly sandboxes: readonly SandboxStatus[];
  readonly containers: readonly ContainerStatus[];
}

export const emptyPodStatus = (uid: PodUid, name: string, namespace: string): RuntimePodStatus => ({
  uid,
  name,
  namespace,
  ips: [],
  sandboxes: [],
  containers: [],
});

/** Newest first: highest attempt; created later only between equals. */
export const newestFirst = (a: { attempt: number; createdAt: number }, b: { attempt: number; createdAt: number }): number =>
  b.attempt - a.attempt || b.createdAt - a.createdAt;

// The kubelet's labels and annotations (kubelet v1.32 kuberuntime/labels.go) and podsched's own.
export const labels = {
  podName: 'io.kubernetes.pod.name',
  podNamespace: 'io.kubernetes.pod.namespace',
  podUid: 'io.kubernetes.pod.uid',
  containerName: 'io.kubernetes.container.name',
  managed: 'podsched.dev/managed',
} as const;

export const annotations = {
  containerHash: 'io.kubernetes.container.hash',
  restartCount: 'io.kubernetes.container.restartCount',
  terminationMessagePath: 'io.kubernetes.container.terminationMessagePath',
  terminationMessagePolicy: 'io.kubernetes.container.terminationMessagePolicy',
  preStopHandler: 'io.kubernetes.container.preStopHandler',
  ports: 'io.kubernetes.container.ports',
  terminationGracePeriod: 'io.kubernetes.pod.terminationGracePeriod',
  deletionGracePeriod: 'io.kubernetes.pod.deletionGracePeriod',
  podHash: 'podsched.dev/pod-hash',
  ourContainerHash: 'podsched.dev/container-hash',
  source: 'podsched.dev/source',
  started: 'podsched.dev/started',
} as const;
