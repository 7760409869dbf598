/**
 * What the pods of this node are given from its file system: volumes, subPaths, /etc/hosts, /etc/resolv.conf, the file for last words.
 *
 * Owns: everything below `podsDir`, one folder per pod instance. What was made once is not looked at again in this agent's life; after an
 * agent restart it is found as it is, after a reboot what was in memory is made anew.
 * Never: deletes or changes anything of a hostPath, follows a link when it deletes, deletes through a mount, writes where nothing changed,
 * makes a volume that no container mounts.
 * Mirrors kubelet v1.32 volumemanager, volume/* and kubelet_pods.go makeMounts (facts 10.9–10.11, 15.2–15.7), without its loops: a pod's
 * own steps ask for what they need.
 */
import { mkdir, readdir, realpath } from 'node:fs/promises';
import type { DesiredPod } from '../api/desired.ts';
import type { PodUid } from '../api/objects.ts';
import type { ObjectLookup } from '../api/references.ts';
import type { Container, EphemeralContainer } from '../api/v1.ts';
import { HeldBack } from '../container/heldBack.ts';
import type { Mount } from '../container/runtime.ts';
import type { Clock } from '../world/clock.ts';
import { isMissing } from '../world/errno.ts';
import { describeError, type Log } from '../world/log.ts';
import { type ContainerMountsDeps, containerMounts, type MountOptions } from './containerMounts.ts';
import { EtcFiles, type NodePod } from './etcFiles.ts';
import type { VolumeKind } from './kind.ts';
import { kindOf, volumeKinds } from './kinds.ts';
import { isUid, podFolder } from './layout.ts';
import type { Mounter } from './mount.ts';
import { removePodFolder } from './removePod.ts';
import type { ResolvWords } from './resolv.ts';
import { VolumeError, type VolumeFailure } from './volumeError.ts';
import { mountedVolumes } from './volumeMounts.ts';

export interface VolumeManagerDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** `<stateDir>/pods`: it must outlive a reboot. */
  readonly podsDir: string;
  readonly mounter: Mounter;
  readonly nodeMemoryBytes: number;
  /** What files of the downward API say of a container without a limit. Left out: one, and nothing. */
  readonly nodeCpus?: number;
  readonly nodeStorageBytes?: () => number;
  /** The pod's resolv.conf, after its policy and the node's servers of this moment. */
  readonly dnsOf: (desired: DesiredPod) => ResolvWords;
  /** The node's own, `/etc/hosts`. */
  readonly hostsFile: string;
  readonly clusterDomain?: string;
  /** Whether this runtime handler (`''`: the default one) mounts read-only all the way down. */
  readonly recursiveReadOnly: (handler: string) => boolean;
  /** The kernel labels files for containers. Left out: it does not. */
  readonly seLinux?: () => boolean;
  /**
   * Whether anything of the instance runs, whoever's it is by now: under another node name the agent does not know its own former pods.
   * Rejects when the runtime does not say. Left out: nothing does.
   */
  readonly lives?: (uid: PodUid) => Promise<boolean>;
  /** The ConfigMaps and Secrets that volumes take their files from. Left out: there are none. */
  readonly objects?: ObjectLookup;
  /** Rejects when a hostPath is held back from a pod now, as a disk that is away. Left out: none is. */
  readonly checkPath?: (desired: DesiredPod, path: string) => Promise<void>;
  /** The path that a hostPath of a pod may not lead out of. Left out, undefined: none. */
  readonly rootOf?: (desired: DesiredPod, path: string) => string | undefined;
  /** The runtime's name and version, empty before it was asked. Left out: it has no image volumes. */
  readonly runtimeVersion?: () => { readonly name: string; readonly version: string };
}

/** Many pods start together: their names are written into the files of all others once. */
const quietMs = 200;

export class VolumeManager {
  readonly #kinds: readonly VolumeKind[];
  readonly #etc: EtcFiles;
  readonly #mountDeps: ContainerMountsDeps;
  #root: string;
  /** Volumes that stand, by pod; a pod is here once its folder was looked at. */
  #ready = new Map<PodUid, Set<string>>();
  #pods = new Map<PodUid, DesiredPod>();
  /** The end of the line of each pod's work. */
  #lines = new Map<PodUid, Promise<unknown>>();
  /** Why a former pod's folder is still there. */
  #left = new Map<PodUid, string>();
  #unknown: ReadonlySet<PodUid> = new Set();
  #newest: readonly NodePod[] | undefined;
  #telling: Promise<void> | undefined;

  constructor(private readonly deps: VolumeManagerDeps) {
    const { mounter, dnsOf, hostsFile, clusterDomain = '', podsDir } = deps;
    this.#root = podsDir;
    this.#kinds = volumeKinds(deps);
    this.#etc = new EtcFiles({ dnsOf, hostsFile, clusterDomain: clusterDomain.replace(/\.$/, ''), root: () => this.#root });
    const { recursiveReadOnly, seLinux = () => false } = deps;
    this.#mountDeps = { mounter, kinds: this.#kinds, etc: this.#etc, recursiveReadOnly, seLinux };
  }

  /**
   * The pod's folder and every volume that one of its containers mounts. Cheap when they stand. Rejects with VolumeError, which names each
   * volume that could not be made; the others stand then. `runs`: containers of it run, so files that an earlier agent made are enough, and
   * `refresh` says what they lack.
   */
  async setUp(desired: DesiredPod, { runs = false }: { readonly runs?: boolean } = {}): Promise<void> {
    const wanted = [...mountedVolumes(desired.pod)];
    const ready = this.#ready.get(desired.uid);
    if (ready !== undefined && wanted.every((name) => ready.has(name))) {
      this.#pods.set(desired.uid, desired);
      return;
    }
    await this.#inLine(desired.uid, () => this.#setUp(desired, wanted, runs));
  }

  /**
   * Files that follow ConfigMaps, Secrets and the pod itself are brought up to date, in the volumes that stand. To be called when any of these
   * may have changed; looks at no disk when none did. Rejects with VolumeError, which names each volume that cannot follow, and why: its
   * files stay as they were, and the others follow.
   */
  async refresh(desired: DesiredPod): Promise<void> {
    if (this.#ready.has(desired.uid)) await this.#inLine(desired.uid, () => this.#refresh(desired));
  }

  /**
   * What is mounted into one attempt of a container, in the order the kubelet has it: volumes, /etc/hosts, the file for last words; then our
   * resolv.conf. `podIps`: empty while the pod has none. Rejects with why the container cannot be made (CreateContainerConfigError).
   */
  async mounts(
    desired: DesiredPod,
    container: Container | EphemeralContainer,
    attempt: number,
    podIps: readonly string[],
    o: MountOptions = {},
  ): Promise<readonly Mount[]> {
    return this.#inLine(desired.uid, async () => {
      const pod = await this.#makeFolder(desired.uid);
      const ready = this.#ready.get(desired.uid) ?? new Set<string>();
      return containerMounts(this.#mountDeps, { desired, pod, container, attempt, podIps, ready }, o);
    });
  }

  /**
   * Unmounts what was mounted for the pod and deletes its folder. Rejects while something is in use; what is gone stays gone, and a later
   * call goes on.
   */
  async tearDown(uid: PodUid): Promise<void> {
    await this.#inLine(uid, () => this.#tearDown(uid));
  }

  /**
   * Folders of pods that nobody knows go, as far as they can. To be called only when every pod of this node is known, those that still run
   * and nobody wants among them. A pod of this agent goes only when it was unknown the last time as well: it may have come since the caller
   * looked. Never rejects.
   */
  async retain(known: ReadonlySet<PodUid>): Promise<void> {
    const before = this.#unknown;
    this.#unknown = new Set((await this.#folders()).filter((uid) => !known.has(uid)));
    for (const uid of this.#unknown) {
      const work = async (): Promise<void> => {
        if (this.#pods.has(uid) && !before.has(uid)) return;
        if ((await this.deps.lives?.(uid)) === true) throw new Error('containers of it still run');
        await this.#tearDown(uid);
      };
      try {
        await this.#inLine(uid, work);
        this.#left.delete(uid);
      } catch (e) {
        const error = describeError(e);
        // housekeeping comes by every minute: one line per cause
        if (this.#left.get(uid) !== error) this.deps.log.warn({ uid, error }, 'the folder of a former pod cannot be removed yet');
        this.#left.set(uid, error);
      }
    }
  }

  /**
   * The node's pods or their addresses changed: `/etc/hosts` of all that run is brought up to date. Takes all pods that have an address;
   * calls that come close together are one. Never rejects.
   */
  hostsChanged(pods: readonly NodePod[]): Promise<void> {
    this.#newest = pods;
    this.#etc.setNeighbours(pods);
    this.#telling ??= this.#tellHosts();
    return this.#telling;
  }

  /** The node's DNS servers changed: every pod's resolv.conf is brought up to date. Never rejects. */
  async resolvChanged(): Promise<void> {
    for (const desired of [...this.#pods.values()]) {
      await this.#correct(desired, () => this.#etc.correctResolv(desired));
    }
  }

  async #setUp(desired: DesiredPod, wanted: readonly string[], runs: boolean): Promise<void> {
    const {
      uid,
      pod: { spec },
    } = desired;
    const pod = await this.#makeFolder(uid);
    const first = !this.#ready.has(uid);
    const ready = this.#ready.get(uid) ?? new Set<string>();
    this.#ready.set(uid, ready);
    this.#pods.set(uid, desired);
    // of an earlier agent: the node's servers may have changed while none ran
    if (first) await this.#correct(desired, () => this.#etc.correctResolv(desired));
    const failures: VolumeFailure[] = [];
    for (const volume of spec.volumes ?? []) {
      if (!wanted.includes(volume.name) || ready.has(volume.name)) continue;
      try {
        await kindOf(this.#kinds, volume).setUp({ desired, volume, pod, runs });
        ready.add(volume.name);
      } catch (e) {
        failures.push({ volume: volume.name, message: describeError(e), ...(e instanceof HeldBack && { reason: e.reason }) });
      }
    }
    // named by a mount and by no volume: told when the container is made
    for (const name of wanted) if (!(spec.volumes ?? []).some((v) => v.name === name)) ready.add(name);
    if (failures.length > 0) throw new VolumeError(failures);
  }

  async #refresh(desired: DesiredPod): Promise<void> {
    const ready = this.#ready.get(desired.uid);
    const pod = podFolder(this.#root, desired.uid);
    const failures: VolumeFailure[] = [];
    for (const volume of desired.pod.spec.volumes ?? []) {
      if (ready?.has(volume.name) !== true) continue;
      try {
        await kindOf(this.#kinds, volume).refresh?.({ desired, volume, pod });
      } catch (e) {
        failures.push({ volume: volume.name, message: describeError(e) });
      }
    }
    if (failures.length > 0) throw new VolumeError(failures);
  }

  async #tearDown(uid: PodUid): Promise<void> {
    this.#ready.delete(uid);
    this.#pods.delete(uid);
    this.#etc.forget(uid);
    if (!isUid(uid)) return;
    await this.#findRoot();
    for (const kind of this.#kinds) kind.forget?.(podFolder(this.#root, uid));
    await removePodFolder(this.deps.mounter, this.#root, uid);
  }

  async #makeFolder(uid: PodUid): Promise<string> {
    if (!isUid(uid)) throw new Error('the UID of the pod cannot be the name of a folder');
    await this.#findRoot();
    const folder = podFolder(this.#root, uid);
    await mkdir(folder, { recursive: true, mode: 0o750 });
    return folder;
  }

  /** Mount points are told by their real paths, and stateDir may be a link. */
  async #findRoot(): Promise<void> {
    try {
      this.#root = await realpath(this.deps.podsDir);
    } catch (e) {
      if (!isMissing(e)) throw e;
      await mkdir(this.deps.podsDir, { recursive: true, mode: 0o750 });
      this.#root = await realpath(this.deps.podsDir);
    }
  }

  async #folders(): Promise<PodUid[]> {
    try {
      const entries = await readdir(this.deps.podsDir, { withFileTypes: true });
      return entries.filter((e) => e.isDirectory() && isUid(e.name)).map((e) => e.name as PodUid);
    } catch (e) {
      if (!isMissing(e)) this.deps.log.warn({ error: describeError(e) }, 'the folders of pods cannot be listed');
      return [];
    }
  }

  async #tellHosts(): Promise<void> {
    await this.deps.clock.sleep(quietMs);
    while (this.#newest !== undefined) {
      const pods = this.#newest;
      this.#newest = undefined;
      for (const pod of pods) await this.#correct(pod.desired, () => this.#etc.correctHosts(pod));
    }
    this.#telling = undefined;
  }

  /** One pod's file is no other's trouble; it is set right at the next start of a container at the latest. */
  async #correct(desired: DesiredPod, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (e) {
      this.deps.log.warn({ pod: desired.name, error: describeError(e) }, 'a file of a pod in /etc cannot be brought up to date');
    }
  }

  /** A pod's works follow one another: what is called off by a caller still ends before the next begins. */
  #inLine<T>(uid: PodUid, work: () => Promise<T>): Promise<T> {
    const before = this.#lines.get(uid) ?? Promise.resolve();
    const mine = before.then(work, work);
    this.#lines.set(uid, mine);
    const end = (): void => {
      if (this.#lines.get(uid) === mine) this.#lines.delete(uid);
    };
    mine.then(end, end);
    return mine;
  }
}
