/**
 * The wiring's half that ends pods against their will: eviction, the way back, and what both must know of pods, their use and the node. Owns
 * where the runtime said that images lie; the rooms own the rest. Left out of a world without it, where nobody is ever evicted.
 */
import { dirname } from 'node:path';
import type { DesiredPod } from './api/desired.ts';
import type { Eviction as Why } from './api/evicted.ts';
import type { EvictionThreshold } from './api/evictionThresholds.ts';
import type { PodUid } from './api/objects.ts';
import type { PodStatus } from './api/status.ts';
import { ComeBack } from './eviction/comeBack.ts';
import { removeDeadLogs } from './eviction/deadLogs.ts';
import type { EvictOptions, NodeReadings } from './eviction/deps.ts';
import { Eviction } from './eviction/manager.ts';
import { podDiskUsage } from './eviction/podDisk.ts';
import { type GroupUse, podUsage } from './eviction/podUsage.ts';
import type { DiskAmount, FilesystemReading } from './eviction/words.ts';
import type { ImageGc } from './images/gc.ts';
import type { Instances } from './instances.ts';
import type { UpdateParts } from './kubeletUpdates.ts';
import type { KubeletSettings, KubeletWorld } from './kubeletWorld.ts';
import type { LoggedContainer } from './kuberuntime/logFolder.ts';
import { podLogFolder } from './kuberuntime/names.ts';
import { evictPod } from './pod/evict.ts';
import { EvictedPods } from './pod/evicted.ts';
import { emptyDirKind, podFolder, volumeFolder } from './volumes/layout.ts';

/** What of this machine, and of its configuration, eviction goes by. */
export interface EvictionWorld extends Pick<NodeReadings, 'memory' | 'processes'> {
  readonly thresholds: readonly EvictionThreshold[];
  readonly pressureTransitionMs: number;
  readonly filesystem: (path: string) => Promise<FilesystemReading | undefined>;
  readonly folderUsage: (folder: string, signal: AbortSignal) => Promise<DiskAmount>;
  /** `<stateDir>/pods` */
  readonly podsDir: string;
}

export interface EvictionParts
  extends Pick<UpdateParts, 'pods' | 'config' | 'admission' | 'pleg' | 'workers' | 'completions' | 'runtime' | 'status' | 'telling'> {
  readonly instances: Instances;
  readonly setStatus: (desired: DesiredPod, status: PodStatus) => void;
  readonly containers: () => readonly LoggedContainer[];
  readonly imageGc: () => Pick<ImageGc, 'prune'>;
  /** What pods use by their cgroups; undefined where nobody reads these. */
  readonly cm: () =>
    | {
        readonly usage: { pod(uid: PodUid): Promise<GroupUse | undefined> };
        podsMemory(): ReturnType<NonNullable<NodeReadings['podsMemory']>>;
        brake?(uid: PodUid): Promise<void>;
      }
    | undefined;
}

export class EvictionSide {
  readonly manager: Eviction;
  readonly pods: EvictedPods;
  #comeBack: ComeBack;
  #imageFolder: string | undefined;
  #asking: Promise<void> | undefined;

  constructor(
    private readonly world: KubeletWorld,
    { nodeName, podLogsDir }: Pick<KubeletSettings, 'nodeName' | 'podLogsDir'>,
    eviction: EvictionWorld,
    private readonly parts: EvictionParts,
  ) {
    const { clock, log, runtime, runStore: store } = world;
    const { filesystem, podsDir, folderUsage, thresholds, pressureTransitionMs } = eviction;
    const desired = (uid: PodUid) => parts.pods.get(uid);
    const containerStats = () => runtime.listContainerStats();
    const disk = {
      ...{ log, containerStats, folderUsage },
      emptyDirFolder: (uid: PodUid, volume: string) => volumeFolder(podFolder(podsDir, uid), emptyDirKind, volume),
      logFolder: (pod: DesiredPod, container: string) => `${podLogsDir}/${podLogFolder(pod)}/${container}`,
    };
    const isOver = (uid: PodUid): boolean => parts.workers().state(uid) === 'finished';
    this.manager = new Eviction({
      ...{ clock, log, store, thresholds, pressureTransitionMs },
      node: {
        memory: () => eviction.memory(),
        processes: () => eviction.processes(),
        podsMemory: () => parts.cm()?.podsMemory(),
        // not there before the first pod
        nodefs: async () => (await filesystem(podsDir)) ?? filesystem(dirname(podsDir)),
        imagefs: async () => {
          const folder = this.#imagesLie();
          return folder === undefined ? undefined : filesystem(folder);
        },
      },
      pods: () => parts.pods.list().filter(({ uid }) => parts.workers().state(uid) === 'sync'),
      usage: (uids) => podUsage({ clock, containerStats, groupUse: async (uid) => parts.cm()?.usage.pod(uid) }, uids),
      diskUsage: (pods, signal) => podDiskUsage(disk, pods, signal),
      reclaim: {
        deadLogs: () => removeDeadLogs(parts.containers().map((c) => c.logPath)),
        deadContainers: () => parts.runtime().gc.collect(parts.pleg().pods(), { keepPerName: 1, mayRemoveContent: isOver }),
        unusedImages: () => parts.imageGc().prune(false, 'for want of room'),
      },
      brake: async (uid) => parts.cm()?.brake?.(uid),
      evict: (uid, o) => this.#evict(uid, o),
      removeContent: (uid) => this.pods.clear(uid),
      event: (type, reason, message) =>
        parts.telling().events.event({ kind: 'Node', namespace: 'default', name: nodeName }, type, reason, message),
      changed: () => {
        this.#comeBack.pressureChanged();
        parts.admission().again();
        world.conditionsChanged();
      },
    });
    this.#comeBack = new ComeBack({
      ...{ clock, log, store, desired },
      pressures: () => this.manager.pressures(),
      renew: (uid) => parts.config().renewInstance(uid),
      waits: (uid, ms) => parts.instances.waits(uid, ms),
    });
    this.pods = new EvictedPods({
      ...{ desired, workers: parts.workers, completions: parts.completions },
      status: (uid) => parts.status().get(uid),
      graceOf: (uid) => this.#comeBack.graceOf(uid),
      comesBack: (pod) => this.#comeBack.ended(pod),
      collect: (uid) => parts.runtime().collectPod(uid, true),
      event: (pod, type, reason, message) => parts.telling().event(pod, undefined, type, reason, message),
    });
  }

  /** What an earlier agent of this boot left. Never rejects. */
  async load(): Promise<void> {
    await Promise.all([this.manager.load(), this.#comeBack.load()]);
  }

  run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#comeBack.stop(), { once: true });
    return this.manager.run(signal);
  }

  /** For preemption: ends the pod for another one's sake. Rejects when it did not end in time. */
  evictPod(uid: PodUid, o: Why & { readonly graceSeconds: number | undefined }): Promise<void> {
    return this.#evict(uid, { ...o, until: undefined });
  }

  retain(): void {
    this.pods.retain();
    this.#comeBack.retain((key) => this.parts.pods.byKey(key) !== undefined);
  }

  async #evict(uid: PodUid, o: EvictOptions): Promise<void> {
    const { parts } = this;
    const pod = parts.pods.get(uid);
    if (pod === undefined) return;
    await this.#comeBack.decided(pod, o);
    await evictPod(
      {
        ...{ clock: this.world.clock, workers: parts.workers(), setStatus: parts.setStatus },
        desired: (u) => parts.pods.get(u),
        status: (u) => parts.status().get(u),
        event: (p, type, reason, message) => parts.telling().event(p, undefined, type, reason, message),
      },
      uid,
      o,
    );
  }

  /** A folder on the file system of images; undefined until the runtime has said so, which nobody waits for. */
  #imagesLie(): string | undefined {
    if (this.#imageFolder !== undefined) return this.#imageFolder;
    this.#asking ??= this.world.images
      .imageFilesystems()
      .then(
        ([first]) => {
          if (first !== undefined && first.mountpoint !== '') this.#imageFolder = first.mountpoint;
        },
        () => {}, // while the runtime is away, nobody knows
      )
      .finally(() => {
        this.#asking = undefined;
      });
    return undefined;
  }
}

export const buildEviction = (
  world: KubeletWorld & { readonly eviction?: EvictionWorld },
  settings: Pick<KubeletSettings, 'nodeName' | 'podLogsDir'>,
  parts: EvictionParts,
): EvictionSide | undefined => world.eviction && new EvictionSide(world, settings, world.eviction, parts);
