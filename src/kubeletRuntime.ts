/**
 * The wiring's half towards the runtime: what pulls, starts, kills, adopts and cleans up, with its back-off. The other half is kubelet.ts,
 * which hands over what only it knows. Owns the back-off's place in runDir and the cgroup driver as the runtime said it.
 */
import { parseCrashBackoff } from './api/crashBackoff.ts';
import type { DesiredPod } from './api/desired.ts';
import { hashIn, hashScheme, newestScheme } from './api/hash.ts';
import type { PodUid } from './api/objects.ts';
import type { ObjectLookup } from './api/references.ts';
import type { CgroupDriver } from './api/resources.ts';
import { orAbort } from './async/abort.ts';
import { Backoff } from './async/backoff.ts';
import type { DeviceManager } from './cm/devices.ts';
import type { ProbeResult } from './container/probes.ts';
import type { RuntimeHandler } from './container/runtime.ts';
import { annotations, type ContainerId, type RuntimePodStatus } from './container/words.ts';
import { sandboxParents } from './kubeletCm.ts';
import { nodeCgroups } from './kubeletCpu.ts';
import type { ImageSide } from './kubeletImages.ts';
import type { KubeletSettings, KubeletWorld } from './kubeletWorld.ts';
import { Adoption } from './kuberuntime/adopt.ts';
import type { KubeRuntimeDeps } from './kuberuntime/deps.ts';
import { ContainerGc } from './kuberuntime/gc.ts';
import { KubeRuntime, type PodSyncResult } from './kuberuntime/manager.ts';
import { type PodRef, uidOfBackoffKey } from './kuberuntime/names.ts';
import { RestartOnChange } from './kuberuntime/restartOnChange.ts';
import type { Monotonic } from './world/clock.ts';
import { describeError } from './world/log.ts';

export interface RuntimeParts {
  readonly images: Pick<ImageSide, 'manager' | 'repair'>;
  readonly event: (pod: PodRef, container: string | undefined, type: 'Normal' | 'Warning', reason: string, message: string) => void;
  readonly exitSeenAt: (id: ContainerId) => Monotonic;
  readonly acted: (uid: PodUid, id: string) => void;
  readonly desired: (uid: PodUid) => DesiredPod | undefined;
  readonly liveness: (id: ContainerId) => ProbeResult | undefined;
  readonly startup: (id: ContainerId) => ProbeResult | undefined;
  readonly postStartEnded: (uid: PodUid) => void;
  /** Accepted ConfigMaps and Secrets, as a pod of that source sees them. */
  readonly objects: ObjectLookup;
  readonly cpus: KubeRuntimeDeps['cpus'];
  readonly restarts: KubeRuntimeDeps['restarts'];
  readonly mine: (labels: Readonly<Record<string, string>>) => boolean;
  readonly devices: Pick<DeviceManager, 'devicesFor' | 'review' | 'isBack'>;
}

const firstBackoffMs = 10_000;
const backoffKey = 'backoff';

export class RuntimeSide {
  readonly adoption: Adoption;
  readonly backoff: Backoff;
  readonly manager: KubeRuntime;
  readonly gc: ContainerGc;
  readonly restartOnChange: RestartOnChange;
  #driver: CgroupDriver | undefined;
  #handlers: readonly RuntimeHandler[] = [];
  #asking: Promise<void> | undefined;
  #keptBackoff = '';
  #collecting = new Map<PodUid, { readonly again: boolean; readonly removeAll: boolean }>();

  constructor(
    private readonly world: KubeletWorld,
    private readonly settings: KubeletSettings,
    private readonly parts: RuntimeParts,
  ) {
    const { clock, log, runtime } = world;
    const { event, mine } = parts;
    this.adoption = new Adoption({ store: world.stateStore, scheme: newestScheme, hashIn, event });
    this.backoff = new Backoff(clock, (key) => this.#limits(key));
    const { stateStore, runStore } = world;
    this.restartOnChange = new RestartOnChange({ log, objects: parts.objects, stateStore, runStore });
    const { manager: images, repair } = parts.images;
    this.manager = new KubeRuntime({
      clock,
      log,
      runtime,
      logs: world.logFolders,
      ensureImage: async (desired, container, signal) => {
        await repair?.settled(container.image, signal);
        return images.ensure(desired, container, signal);
      },
      ...(repair && { repairImage: (desired, container, ended, abort) => repair.repair(desired, container, ended, abort) }),
      backoff: this.backoff,
      exitSeenAt: parts.exitSeenAt,
      event,
      adoption: this.adoption,
      liveness: parts.liveness,
      startup: parts.startup,
      postStartEnded: parts.postStartEnded,
      objects: parts.objects,
      restartOnChange: this.restartOnChange,
      ...(parts.cpus && { cpus: parts.cpus }),
      ...(parts.restarts && { restarts: parts.restarts }),
      devices: (desired, container, image) => parts.devices.devicesFor(desired, container, image),
      lostDevices: parts.devices,
      mounts: async (desired, container, attempt, ips, inputs) => {
        // what a subPath shows is bound once: it must not be older than the mark on the container; the pod's own step tells what fails
        await world.volumes.refresh?.(desired).catch(() => {});
        return world.volumes.mounts(desired, container, attempt, ips, { handler: desired.pod.spec.runtimeClassName ?? '', ...inputs });
      },
      acted: parts.acted,
      settings: {
        nodeName: settings.nodeName,
        podLogsDir: settings.podLogsDir,
        bootId: world.bootId,
        nodeMemoryBytes: world.nodeMemoryBytes,
        cgroupDriver: () => (settings.cgroupDriver === 'auto' ? (this.#driver ?? 'cgroupfs') : settings.cgroupDriver),
        cgroupParent: sandboxParents(settings),
        hostDns: world.hostDns,
        hostIps: world.hostIps,
        ...(world.nodeCpus !== undefined && { nodeCpus: world.nodeCpus }),
        ...(world.nodeStorageBytes && { nodeStorageBytes: world.nodeStorageBytes }),
        ...(settings.clusterDns && { clusterDns: settings.clusterDns }),
        ...(settings.clusterDomain && { clusterDomain: settings.clusterDomain }),
        seccompDefault: settings.seccompDefault ?? false,
        ...(settings.seccompFolder && { seccompFolder: settings.seccompFolder }),
        thermalThrottlePaths: world.thermalThrottlePaths,
        ...(world.hugepageSizes && { hugepageSizes: world.hugepageSizes }),
        countsSwap: world.countsSwap ?? false,
        ...(world.cgroups && { cgroups: nodeCgroups(world.cgroups.facts) }),
      },
    });
    this.gc = new ContainerGc({ log, runtime, logs: world.logFolders, mine });
  }

  /** What outlives the agent: adopted hashes (card) and the restart back-off (runDir; losing it is never an error). */
  async load(): Promise<void> {
    await this.restartOnChange.load();
    try {
      await this.adoption.load();
    } catch (e) {
      this.world.log.error({ error: describeError(e) }, 'what was adopted before cannot be read');
    }
    try {
      const stored = await this.world.runStore.get(backoffKey);
      if (typeof stored === 'object' && stored !== null) this.backoff.restore(stored as ReturnType<Backoff['snapshot']>);
    } catch (e) {
      this.world.log.warn({ error: describeError(e) }, 'the stored back-off cannot be read');
    }
  }

  /**
   * Writes the back-off when it changed; nearly every step leaves it as it was, and costs no look at the disk then. Never rejects: a full
   * runDir is no failure of a pod's step.
   */
  async keepBackoff(): Promise<void> {
    const snapshot = this.backoff.snapshot();
    const text = JSON.stringify(snapshot);
    if (text === this.#keptBackoff) return;
    const before = this.#keptBackoff;
    this.#keptBackoff = text;
    try {
      await this.world.runStore.put(backoffKey, snapshot);
    } catch (e) {
      // the next step tries again
      this.#keptBackoff = before;
      this.world.log.warn({ error: describeError(e) }, 'the back-off cannot be stored');
    }
  }

  /** Takes away what is dead of one pod; asked again meanwhile, one more pass follows. False: something is left. Never rejects. */
  async collectPod(uid: PodUid, removeAll: boolean): Promise<boolean> {
    if (this.#collecting.has(uid)) {
      this.#collecting.set(uid, { again: true, removeAll });
      return true;
    }
    let clean = true;
    let next = { again: true, removeAll };
    while (next.again) {
      this.#collecting.set(uid, { again: false, removeAll });
      try {
        clean = await this.gc.collectPod(uid, 1, next.removeAll);
      } catch (e) {
        clean = false;
        this.world.log.debug({ uid, error: describeError(e) }, 'what is left of a pod could not be removed yet');
      }
      next = this.#collecting.get(uid) ?? { again: false, removeAll };
    }
    this.#collecting.delete(uid);
    return clean;
  }

  /** One step of a pod; what the runtime is made of is known before the first sandbox. */
  async syncPod(desired: DesiredPod, status: RuntimePodStatus, signal: AbortSignal): Promise<PodSyncResult> {
    await orAbort(this.ask(), signal);
    await this.world.archives?.sandboxSettled(signal);
    return this.manager.syncPod(desired, status, signal);
  }

  /** The newest sandbox has another pod-hash than the wanted pod. One of another release's scheme is adopted, which is not asked here. */
  madeOtherwise(desired: DesiredPod, status: RuntimePodStatus): boolean {
    const [newest] = status.sandboxes;
    const recorded = newest?.annotations[annotations.podHash] ?? '';
    return newest !== undefined && hashScheme(recorded) === newestScheme && recorded !== desired.podHash;
  }

  /**
   * A container that ended was made of another definition than the wanted one, which has not run yet. A record in another release's hash is
   * adopted first.
   */
  async endedOtherwise(desired: DesiredPod, status: RuntimePodStatus): Promise<boolean> {
    await this.adoption.review(desired, status);
    return desired.pod.spec.containers.some(({ name }) => {
      const newest = status.containers.find((c) => c.name === name);
      const recorded = newest?.annotations[annotations.ourContainerHash];
      return newest !== undefined && !this.adoption.sameHash(recorded ?? '', desired.containerHashes[name] ?? '', newest.id);
    });
  }

  /** Whether a handler of the runtime (`''`: the default one) mounts read-only all the way down. */
  recursiveReadOnly(handler: string): boolean {
    return this.#handlers.some((h) => h.name === handler && h.recursiveReadOnlyMounts);
  }

  /** The runtime is asked once how it makes cgroups and what its handlers can, and again when it did not answer. Never rejects. */
  ask(): Promise<void> {
    const { runtime, log } = this.world;
    this.#asking ??= Promise.all([runtime.cgroupDriver(), runtime.handlers()]).then(
      ([driver, handlers]) => {
        this.#driver = driver;
        this.#handlers = handlers;
      },
      (e) => {
        this.#asking = undefined;
        log.warn({ error: describeError(e) }, 'the runtime does not say what it is made of');
      },
    );
    return this.#asking;
  }

  /** How the runtime makes cgroups, where that is not configured; undefined: it has not answered yet. */
  async driver(): Promise<CgroupDriver | undefined> {
    if (this.settings.cgroupDriver !== 'auto') return this.settings.cgroupDriver;
    await this.ask();
    return this.#asking === undefined ? undefined : (this.#driver ?? 'cgroupfs');
  }

  #limits(key: string): { readonly firstMs: number; readonly maxMs: number } {
    const uid = uidOfBackoffKey(key);
    const pod = uid === undefined ? undefined : this.parts.desired(uid);
    const own = parseCrashBackoff(pod?.pod.metadata.annotations?.['podsched.dev/crash-backoff'] ?? '');
    return own ?? { firstMs: firstBackoffMs, maxMs: this.settings.maxContainerRestartMs };
  }
}
