// pure
/**
 * The pod as we report it: `v1 PodStatus` and what belongs to it, as Kubernetes shapes it. Times are RFC 3339 texts in whole seconds.
 */
import type { ObjectMeta, PodSpec, RecursiveReadOnlyMode } from './v1.ts';

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed';

export interface ContainerStateRunning {
  readonly startedAt: string;
}
export interface ContainerStateWaiting {
  readonly reason?: string;
  readonly message?: string;
}
export interface ContainerStateTerminated {
  readonly exitCode: number;
  readonly reason?: string;
  readonly message?: string;
  readonly startedAt?: string;
  readonly finishedAt?: string;
  readonly containerID?: string;
}
/** At most one of the three; none is "waiting, unknown why". */
export interface ContainerState {
  readonly waiting?: ContainerStateWaiting;
  readonly running?: ContainerStateRunning;
  readonly terminated?: ContainerStateTerminated;
}
export interface V1ContainerStatus {
  readonly name: string;
  readonly state: ContainerState;
  readonly lastState: ContainerState;
  readonly ready: boolean;
  readonly restartCount: number;
  readonly image: string;
  readonly imageID: string;
  readonly containerID?: string;
  readonly started?: boolean;
  /** What is mounted by the manifest; absent where nothing is. */
  readonly volumeMounts?: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly readOnly?: true;
    readonly recursiveReadOnly?: RecursiveReadOnlyMode;
  }[];
}
export interface PodCondition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly lastTransitionTime: string;
  readonly reason?: string;
  readonly message?: string;
}
export interface PodStatus {
  readonly phase: PodPhase;
  readonly conditions?: readonly PodCondition[];
  readonly message?: string;
  readonly reason?: string;
  readonly hostIP?: string;
  readonly hostIPs?: readonly { readonly ip: string }[];
  readonly podIP?: string;
  readonly podIPs?: readonly { readonly ip: string }[];
  readonly startTime?: string;
  readonly initContainerStatuses?: readonly V1ContainerStatus[];
  readonly containerStatuses?: readonly V1ContainerStatus[];
  readonly ephemeralContainerStatuses?: readonly V1ContainerStatus[];
  readonly qosClass?: 'Guaranteed' | 'Burstable' | 'BestEffort';
}

/** A pod as told: `v1 Pod` with status. */
export interface ToldPod {
  readonly apiVersion: 'v1';
  readonly kind: 'Pod';
  readonly metadata: ObjectMeta;
  readonly spec: PodSpec;
  readonly status: PodStatus;
}

export interface ObjectReference {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string;
  readonly apiVersion?: string;
  readonly fieldPath?: string;
}

/** What an event is about: an object, or a file in which no object could be named. */
export type EventSubject =
  | { readonly kind: string; readonly namespace: string; readonly name: string; readonly uid?: string }
  | { readonly file: string };

/** `v1 Event`. */
export interface V1Event {
  readonly apiVersion: 'v1';
  readonly kind: 'Event';
  readonly metadata: { readonly name: string; readonly namespace: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly involvedObject: ObjectReference;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
  readonly source: { readonly component: string; readonly host: string };
  readonly firstTimestamp: string;
  readonly lastTimestamp: string;
  readonly count: number;
}
