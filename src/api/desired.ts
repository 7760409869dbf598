// pure
/** The pod as desired: one instance of an accepted object, ready for every room. */
import type { KeyText, PodUid, Source } from './objects.ts';
import type { Pod } from './v1.ts';

export interface DesiredPod {
  readonly uid: PodUid;
  readonly key: KeyText;
  readonly name: string;
  readonly namespace: string;
  readonly source: Source;
  /** First 12 hex digits of the canonical object's SHA-256. */
  readonly revision: string;
  /** Defaults filled in as the kubelet fills them; `metadata.namespace`, `metadata.uid` and `spec.nodeName` set. */
  readonly pod: Pod;
  /** Written on the sandbox: `1:…` */
  readonly podHash: string;
  /** By container name (app and init): `1:…` */
  readonly containerHashes: Readonly<Record<string, string>>;
  readonly workHash: string;
  /** When this instance was first accepted, RFC 3339 (for people: metadata.creationTimestamp). */
  readonly firstSeen: string;
}

/** One ordered stream from the sources to the loop. */
export interface PodUpdate {
  /** ADD: a new instance. UPDATE: same instance, containers may change in place. RECONCILE: same instance, nothing restarts. REMOVE: ends. */
  readonly op: 'ADD' | 'UPDATE' | 'REMOVE' | 'RECONCILE';
  readonly pods: readonly DesiredPod[];
}

/** What classifyEdit must know of the running side of an instance. */
export interface InstanceState {
  /** No sandbox is ready though one was made (a reboot). */
  readonly sandboxDead: boolean;
  /** Every container ended for good under its restart policy. */
  readonly finished: boolean;
  /** An init container has not succeeded yet (runs, waits or fails) although the sandbox was made. */
  readonly initUnfinished: boolean;
  /** The worker is ending it, or has ended it. */
  readonly terminating: boolean;
}
