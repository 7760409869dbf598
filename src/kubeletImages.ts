/**
 * The wiring's half for images: who pulls them, who repairs them, what of them may go and when that is due. Owns nothing; images/ does.
 */
import type { DesiredPod } from './api/desired.ts';
import type { PodUid } from './api/objects.ts';
import { podImages } from './api/podImages.ts';
import type { ObjectLookup } from './api/references.ts';
import { Backoff } from './async/backoff.ts';
import type { Config } from './config/manager.ts';
import { ImageGc } from './images/gc.ts';
import { ImageManager } from './images/manager.ts';
import { PersonPins } from './images/personPins.ts';
import { Reach } from './images/reach.ts';
import { ImageRepair } from './images/repair.ts';
import type { Instances } from './instances.ts';
import type { KubeletSettings, KubeletWorld } from './kubeletWorld.ts';
import type { PodRef } from './kuberuntime/names.ts';
import type { EventRecorder } from './status/events.ts';

export interface ImageParts {
  readonly config: () => Config;
  readonly instances: Instances;
  readonly events: EventRecorder;
  readonly event: (pod: PodRef, container: string | undefined, type: 'Normal' | 'Warning', reason: string, message: string) => void;
  readonly objects: ObjectLookup;
  readonly desired: (uid: PodUid) => DesiredPod | undefined;
  /** Another of the pod's images is stale, or none any more. */
  readonly staleChanged: (uid: PodUid) => void;
  readonly mine: (labels: Readonly<Record<string, string>>) => boolean;
  /** Sources were read and the runtime was listed. */
  readonly settled: () => boolean;
}

const firstBackoffMs = 10_000;
const maxBackoffMs = 300_000;

export class ImageSide {
  readonly manager: ImageManager;
  readonly gc: ImageGc;
  readonly pins: PersonPins;
  /** Left out where the runtime is no containerd, or nobody knows what this node runs. */
  readonly repair: ImageRepair | undefined;

  constructor(world: KubeletWorld, settings: KubeletSettings, parts: ImageParts) {
    const { clock, log, runtime, content, nodePlatform, diskUse } = world;
    const { event, mine } = parts;
    const reach = new Reach(clock);
    this.pins = new PersonPins({ log, store: world.stateStore });
    const sandboxImage = () => runtime.sandboxImage();
    this.manager = new ImageManager({
      ...{ clock, log, event },
      images: reach.watching(world.images),
      backoff: new Backoff(clock, () => ({ firstMs: firstBackoffMs, maxMs: maxBackoffMs })),
      // as in the kubelet, two or more at once are not one at a time
      serializePulls: settings.serializeImagePulls && (settings.maxParallelImagePulls ?? 0) < 2,
      parallelPulls: settings.maxParallelImagePulls ?? 0,
      objects: parts.objects,
      desired: parts.desired,
      staleChanged: parts.staleChanged,
      store: world.runStore,
      ...(world.archives && { preloaded: (signal) => world.archives?.settled(signal) ?? Promise.resolve() }),
      ...(content && { content }),
      ...(world.credentials && { credentials: world.credentials }),
      ...(nodePlatform && { nodePlatform }),
    });
    const { logEnd, archives } = world;
    this.repair =
      content === undefined || nodePlatform === undefined || logEnd === undefined
        ? undefined
        : new ImageRepair({
            ...{ log, content, runtime, mine, event, nodePlatform, sandboxImage, logEnd },
            store: world.runStore,
            images: world.images,
            ensure: (desired, container, signal) => this.manager.ensure(desired, container, signal),
            ...(archives && { reimport: (name, signal) => archives.importAgain(name, signal) }),
          });
    const node = { kind: 'Node', namespace: 'default', name: settings.nodeName } as const;
    this.gc = new ImageGc({
      ...{ clock, log, diskUse, sandboxImage },
      images: world.images,
      containers: () => runtime.listContainers(),
      // config: what is wanted, blocked or may be gone back to; instances: with what was added by hand, and what is still ending
      knownImages: () => [...parts.config().knownImages(), ...parts.instances.list().flatMap(({ pod }) => podImages(pod))],
      imported: () => world.archives?.imported() ?? [],
      person: () => this.pins.names(),
      settled: parts.settled,
      offline: async () => reach.unreachable() || !(await world.gates.networkUp()),
      settings: settings.imageGc,
      event: (type, reason, message) => parts.events.event(node, type, reason, message),
      conditionChanged: world.conditionsChanged,
    });
  }

  /** What outlives the agent. Never rejects. */
  async load(): Promise<void> {
    await Promise.all([this.manager.load(), this.repair?.load(), this.pins.load()]);
  }
}
