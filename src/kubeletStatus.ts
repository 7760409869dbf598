/**
 * The wiring's side towards readers: what was told of pods, and the events. Owns nothing; the status room and its recorder do. kubelet.ts
 * hands over what only it knows.
 */
import { containerNamed } from './api/containers.ts';
import type { DesiredPod } from './api/desired.ts';
import type { PodUid } from './api/objects.ts';
import type { ObjectLookup } from './api/references.ts';
import type { PodStatus } from './api/status.ts';
import { nodeTopics } from './api/topics.ts';
import type { GoneDevice } from './container/devices.ts';
import type { StaleImage } from './container/ensureResult.ts';
import { containerFieldPath } from './container/fieldPath.ts';
import type { ProbeView } from './container/probes.ts';
import type { RuntimePodStatus } from './container/words.ts';
import type { KubeletSettings, KubeletWorld } from './kubeletWorld.ts';
import { repeatableSecrets, statusWithoutSecrets, withoutSecrets } from './kuberuntime/envObjects.ts';
import type { PodRef } from './kuberuntime/names.ts';
import { SecretMemory } from './kuberuntime/secretMemory.ts';
import type { StatusInputs } from './podsync.ts';
import { EventRecorder } from './status/events.ts';
import { generatePodStatus } from './status/generate.ts';
import { StatusManager } from './status/manager.ts';
import { toRfc3339 } from './world/clock.ts';

export interface StatusParts {
  /** The manifest of an instance, ending ones too. */
  readonly known: (uid: PodUid) => DesiredPod | undefined;
  readonly probes: (desired: DesiredPod) => ProbeView;
  /** Accepted ConfigMaps and Secrets, as a pod of that source sees them. */
  readonly objects: ObjectLookup;
  readonly recursiveReadOnly: (handler: string) => boolean;
  /** Paths of its manifest that have no effect; undefined before the manifests were read. */
  readonly ignored: (desired: DesiredPod) => readonly string[] | undefined;
  /** Containers whose image could not be refreshed when they were started. */
  readonly staleImages: (uid: PodUid) => readonly StaleImage[];
  /** Devices of its running containers that are not there any more. */
  readonly goneDevices: (uid: PodUid) => readonly GoneDevice[];
  /** What of a pod's limits is not enforced; undefined: nothing. */
  readonly unenforced: (desired: DesiredPod) => string | undefined;
  /** The scheme of container ids. */
  readonly runtimeName: () => string;
}

export class StatusSide {
  readonly manager: StatusManager;
  readonly events: EventRecorder;
  readonly #secrets: SecretMemory;

  constructor(
    private readonly world: KubeletWorld,
    { prefix, nodeName }: KubeletSettings,
    private readonly parts: StatusParts,
  ) {
    this.#secrets = new SecretMemory(parts.objects);
    const { clock, log, runStore: store, boot, seq, broker } = world;
    const topics = nodeTopics(prefix, nodeName);
    this.manager = new StatusManager({ clock, log, store, topics, tell: broker.tell, boot, seq, maxBytes: broker.maxBytes });
    this.events = new EventRecorder({ clock, log, store, topics, nodeName, tell: broker.send, boot, seq });
  }

  generate(desired: DesiredPod, runtime: RuntimePodStatus, inputs: StatusInputs): PodStatus {
    return generatePodStatus({
      desired,
      // a runtime quotes the command it could not run, expanded
      runtime: statusWithoutSecrets(this.#secrets.lookup, desired, runtime),
      old: this.manager.get(desired.uid),
      reasons: this.manager.reasons(desired.uid),
      now: toRfc3339(this.world.clock.now()),
      terminal: inputs.terminal,
      deleting: inputs.ending === true,
      failed: inputs.failed,
      hostIps: this.world.hostIps(),
      runtimeName: this.parts.runtimeName(),
      probes: this.parts.probes(desired),
      ignored: this.parts.ignored(desired),
      staleImages: this.parts.staleImages(desired.uid),
      goneDevices: this.parts.goneDevices(desired.uid),
      unenforced: this.parts.unenforced(desired),
      recursiveReadOnly: this.parts.recursiveReadOnly(desired.pod.spec.runtimeClassName ?? ''),
    });
  }

  event(pod: PodRef, container: string | undefined, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const known = this.parts.known(pod.uid)?.pod;
    const fieldPath = container === undefined || known === undefined ? undefined : containerFieldPath(known, container);
    this.events.event({ kind: 'Pod', namespace: pod.namespace, name: pod.name, uid: pod.uid }, type, reason, message, fieldPath);
  }

  /** As `event`, of what a container itself may have said: it may repeat its environment. */
  quote(pod: PodRef, container: string, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const known = this.parts.known(pod.uid);
    const spec = known && containerNamed(known.pod.spec, container);
    const hidden =
      known === undefined || spec === undefined ? message : withoutSecrets(message, repeatableSecrets(this.#secrets.lookup, known, spec));
    this.event(pod, container, type, reason, hidden);
  }

  /** What an earlier agent of this boot told. */
  async load(): Promise<void> {
    await Promise.all([this.manager.load(), this.events.load()]);
  }

  /** Nothing is told any more; what is known is stored when it resolves. */
  async stop(): Promise<void> {
    this.manager.stop();
    this.events.stop();
    await Promise.all([this.manager.flush(), this.events.flush()]);
  }
}
