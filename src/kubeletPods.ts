/**
 * The wiring's half around a pod: its probes, what it is given of the node's file system, what was added to it by hand, who its neighbours
 * are. Owns which addresses the neighbours were last told; the rooms own the rest. kubelet.ts hands over what only it knows.
 */
import type { DesiredPod } from './api/desired.ts';
import type { PodUid } from './api/objects.ts';
import type { EphemeralContainer } from './api/v1.ts';
import type { ContainerId, RuntimePodStatus } from './container/words.ts';
import type { KubeletWorld } from './kubeletWorld.ts';
import { EphemeralContainers } from './pod/ephemeral.ts';
import type { ProbeManagerDeps } from './prober/deps.ts';
import { ProbeManager } from './prober/manager.ts';
import { describeError } from './world/log.ts';

export interface PodParts {
  readonly statusOf: (uid: PodUid) => RuntimePodStatus | undefined;
  readonly event: ProbeManagerDeps['event'];
  /** Its postStart hook is not over. */
  readonly starting: (id: ContainerId) => boolean;
  /** A probe found something: the pod is to be synced, and told. */
  readonly changed: (uid: PodUid) => void;
  /** Something was added to the pod by hand. */
  readonly added: (uid: PodUid) => void;
  /** Every instance that is wanted or still ending. */
  readonly known: () => readonly DesiredPod[];
}

export class PodSide {
  readonly probes: ProbeManager;
  readonly ephemeral: EphemeralContainers;
  #addresses = '';

  constructor(
    private readonly world: KubeletWorld,
    private readonly parts: PodParts,
  ) {
    const { clock, log, runStore, stateStore, runtime, random, grpcCheck, hostIps, nodeCpus = 1 } = world;
    const { statusOf, starting, event, changed } = parts;
    this.ephemeral = new EphemeralContainers({ log, store: stateStore });
    this.probes = new ProbeManager({
      ...{ clock, log, store: runStore, random, runtime, grpcCheck, statusOf, starting, hostIps, event, changed },
      maxExecProbes: Math.max(1, Math.floor(nodeCpus / 2)),
    });
  }

  async load(): Promise<void> {
    await Promise.all([this.probes.load(), this.ephemeral.load()]);
  }

  /** The runtime has news of a pod. */
  look(uid: PodUid): void {
    this.probes.look(uid);
    this.neighbours();
    this.world.podNews?.();
  }

  /** Pods find each other by name: whoever came, went or moved is written down for the others. */
  neighbours(): void {
    const known = this.parts.known();
    const ofHost = known.some((d) => d.pod.spec.hostNetwork === true) ? this.world.hostIps() : [];
    const pods = known.map((desired) => ({
      desired,
      ips: desired.pod.spec.hostNetwork === true ? ofHost : (this.parts.statusOf(desired.uid)?.ips ?? []),
    }));
    const text = JSON.stringify(pods.map(({ desired, ips }) => [desired.uid, ...ips]));
    if (text === this.#addresses) return;
    this.#addresses = text;
    void this.world.volumes.hostsChanged(pods.filter(({ ips }) => ips.length > 0)); // it never rejects
  }

  /** On the card when it resolves, and to be started as soon as may be. Rejects when it cannot be stored. */
  async addEphemeral(uid: PodUid, container: EphemeralContainer): Promise<void> {
    await this.ephemeral.add(uid, container);
    this.parts.added(uid);
  }

  /** What is kept of pods that are neither wanted nor ending goes. */
  retain(known: ReadonlySet<PodUid>): void {
    this.probes.retain(known);
    void this.ephemeral.retain((uid) => known.has(uid)); // these two never reject
    void this.world.volumes.retain(known);
  }

  async stop(): Promise<void> {
    this.probes.stop();
    await this.probes.flush().catch((e) => this.world.log.warn({ error: describeError(e) }, 'what probes found cannot be stored'));
  }
}
