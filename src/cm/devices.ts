/**
 * Devices of the node for containers without `privileged` (behaviour.md 25).
 *
 * Owns who holds which device: what containers were made with stands on them (`podsched.dev/devices`), so it outlives the agent; beside that
 * only what was promised to a container that is being made. A device is one pod's at a time, until the pod has ended.
 * Absent: its container waits, which is no try and grows no back-off, and is woken by the kernel's word that the device is here. Gone while
 * it runs: told, and the container goes on; back: that container alone is made anew.
 * Never polls while it can watch, watches only for what pods ask for, follows no link out of /dev, stops no container.
 * The kubelet leaves this to device plugins (cm/devicemanager); there a lost device is told at most, and nothing follows.
 */

import type { DesiredPod } from '../api/desired.ts';
import { cdiAnnotations, cdiDevices, type DeviceClasses, deviceRequests } from '../api/deviceClasses.ts';
import type { PodUid } from '../api/objects.ts';
import type { Container, EphemeralContainer } from '../api/v1.ts';
import { Deadlines } from '../async/deadlines.ts';
import { type ContainerDevices, devicesAnnotation, type GoneDevice } from '../container/devices.ts';
import { HeldBack } from '../container/heldBack.ts';
import type { RunnableImage } from '../container/runtime.ts';
import type { ContainerStatus } from '../container/words.ts';
import { after, type Clock } from '../world/clock.ts';
import type { Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import { DeviceArrivals } from './deviceArrivals.ts';
import {
  type Choice,
  choose,
  type Devices,
  type Given,
  givenText,
  type Holder,
  isBack,
  keyOf,
  type Lost,
  type MembersOf,
} from './deviceChoice.ts';
import type { DeviceFiles } from './deviceFiles.ts';
import { type DeviceRecord, holderKey, holdersOf, lostOf } from './deviceHolders.ts';
import { DeviceLosses } from './deviceLosses.ts';
import { absentText, classesOf, closedMembers, closedText, isFree, mayRestart, opensToGroup, userOf, waitingText } from './devicePods.ts';
import { noteNode, type Scan, scanClass } from './deviceScan.ts';
import { DeviceWatch } from './deviceWatch.ts';

export interface DeviceManagerDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly files: DeviceFiles;
  /** runDir. */
  readonly store: Pick<Store, 'get' | 'put'>;
  /** Of the configuration; they may change while running. */
  readonly classes: () => DeviceClasses;
  /** All containers of ours that the runtime has, the newest of a name first. */
  readonly containers: () => readonly DeviceRecord[];
  /** The instance has not ended: what its containers were given is still its. */
  readonly holds: (uid: PodUid) => boolean;
  /** What these pods wait for may be here, or what they have may be gone. */
  readonly wake: (uids: readonly PodUid[]) => void;
  readonly event: (
    pod: { readonly uid: PodUid; readonly namespace: string; readonly name: string },
    container: string,
    type: 'Normal' | 'Warning',
    reason: string,
    message: string,
  ) => void;
  /** The condition of the node has changed. */
  readonly conditionsChanged: () => void;
}

/** Who waits is woken; this is for what nobody tells. */
const lookAgainMs = 60_000;
/** Nobody who only opens it needs to make nodes. */
const permissions = 'rw';
const mostArms = 4;

export class DeviceManager {
  /** What pods care for, in classes. */
  #interest = new Map<PodUid, ReadonlySet<string>>();
  #claims = new Map<string, Holder>();
  #waiting = new Set<PodUid>();
  /** By class: as it was last seen. */
  #members = new Map<string, { readonly text: string; readonly keys: ReadonlySet<string> }>();
  #arrivals: DeviceArrivals;
  /** Pods with a container that is to be made anew when what has come back is what it will be. */
  #settles: Deadlines<PodUid>;
  /** Who had what at the last round of housekeeping. */
  #held = '';
  #losses: DeviceLosses;
  #watch: DeviceWatch;
  #degraded: string | undefined;

  constructor(private readonly deps: DeviceManagerDeps) {
    const { clock, log, files, store } = deps;
    this.#arrivals = new DeviceArrivals(clock);
    this.#settles = new Deadlines(clock, (uid) => deps.wake([uid]));
    this.#losses = new DeviceLosses({ log, store, gone: (holder, given) => this.#tellGone(holder, given) });
    this.#watch = new DeviceWatch({
      ...{ clock, files },
      look: () => void this.#look(),
      degraded: (reason) => {
        this.#degraded = reason;
        deps.conditionsChanged();
      },
    });
  }

  /** What an earlier agent of this boot found gone. Never rejects. */
  load(): Promise<void> {
    return this.#losses.load();
  }

  stop(): void {
    this.#watch.stop();
    this.#settles.stop();
  }

  /** What is known is stored when it resolves. */
  flush(): Promise<void> {
    return this.#losses.flush();
  }

  /**
   * What a container that is about to be made is given; undefined: it asks for nothing. Throws HeldBack (`WaitingForDevice`) while something
   * is missing, another pod has it, or it has just come and may be about to open to the container's user.
   */
  devicesFor(desired: DesiredPod, container: Container | EphemeralContainer, image: RunnableImage): ContainerDevices | undefined {
    const { uid, pod } = desired;
    const wanted = 'resources' in container ? deviceRequests(container) : new Map<string, number>();
    const cdi = { cdiDevices: cdiDevices(pod.metadata), annotations: cdiAnnotations(pod.metadata) };
    if (wanted.size === 0) {
      this.#claims.delete(holderKey(uid, container.name));
      return Object.keys(cdi.annotations).length === 0 ? undefined : { devices: [], groups: [], ...cdi };
    }
    const { given, members } = this.#choose(desired, container.name, wanted);
    const closed = closedMembers(userOf(desired, container, image), container, members);
    const waitMs = this.#arrivals.settlesInMs(closed);
    const texts = closed.map((m) => closedText(m, userOf(desired, container, image)));
    if (waitMs > 0) throw new HeldBack('WaitingForDevice', `${texts.join('; ')}: it may have just come, and its group may follow`, waitMs);
    // nothing stops a start for it: the program may do without, or become root first
    for (const text of texts) this.deps.event(desired, container.name, 'Warning', 'DeviceNotAccessible', text);
    const nodes = members.map(({ paths, node }) => ({ hostPath: this.deps.files.hostPath(node), at: [...new Set([...paths, node])] }));
    return {
      devices: nodes.flatMap(({ hostPath, at }) => at.map((containerPath) => ({ containerPath, hostPath, permissions }))),
      groups: [...new Set(members.filter(opensToGroup).map((m) => m.gid))],
      cdiDevices: cdi.cdiDevices,
      annotations: { ...cdi.annotations, [devicesAnnotation]: givenText(given) },
    };
  }

  /** Before the pod's containers are judged. Costs next to nothing for pods without devices. */
  review(desired: DesiredPod, { containers }: { readonly containers: readonly Pick<ContainerStatus, 'annotations'>[] }): void {
    const has = containers.some((c) => c.annotations[devicesAnnotation] !== undefined);
    if (!has && !this.#interest.has(desired.uid) && classesOf(desired).size === 0) return;
    this.#care(desired);
    this.#look();
  }

  /** Whether a running container is to be made anew, since what it has lost can be had again. After `review`. */
  isBack(desired: DesiredPod, { id, name }: Pick<ContainerStatus, 'id' | 'name'>): boolean {
    if (!this.#losses.has(id) || !mayRestart(desired, name)) return false;
    const devices = this.#devices();
    const lost = this.#lost(devices);
    const who = lost.find(({ holder }) => holder.running === id);
    if (who === undefined || !isBack(who, lost, this.#holders(), devices)) return false;
    // who runs is not stopped for what he could not be given yet
    const waitMs = this.#settlesInMs(desired, name, who, devices.membersOf);
    if (waitMs > 0) this.#settles.set(desired.uid, after(this.deps.clock.monotonic(), waitMs));
    return waitMs === 0;
  }

  /** Why the gate `device:<class>` of a pod is closed, in words; undefined: it is open. The pod is woken when a device of the class comes. */
  gate(desired: DesiredPod, deviceClass: string): string | undefined {
    this.#care(desired);
    return this.#look().membersOf(deviceClass).length > 0 ? undefined : absentText(deviceClass, this.deps.classes());
  }

  /** Devices of running containers of a pod that are gone. */
  gone(uid: PodUid): readonly GoneDevice[] {
    if (!this.#losses.any()) return [];
    const lost = this.#lost(this.#devices()).filter(({ holder }) => holder.uid === uid && holder.running !== undefined);
    return lost.flatMap(({ holder: { container }, gone }) =>
      gone.map(({ deviceClass, paths, node }) => ({ container, deviceClass, paths: [...new Set([...paths, node])] })),
    );
  }

  /** How many devices of a class are there now, whoever has them: what admission counts with. */
  present(deviceClass: string): number {
    return this.#devices().membersOf(deviceClass).length;
  }

  /** The same of every class of the configuration. */
  counts(): Readonly<Record<string, number>> {
    const { membersOf } = this.#devices();
    return Object.fromEntries(Object.keys(this.deps.classes()).map((name) => [name, membersOf(name).length]));
  }

  /** The classes are others, or a pod has ended: who waits looks again. */
  freed(): void {
    if (this.#interest.size === 0) return;
    this.#look();
    if (this.#waiting.size > 0) this.deps.wake([...this.#waiting]);
  }

  /** Instances that nobody knows any more are forgotten. When that, or an end that nobody told, leaves a device free, who waits is woken. */
  retain(known: ReadonlySet<PodUid>): void {
    if (this.#interest.size === 0 && this.#claims.size === 0 && !this.#losses.any()) return;
    for (const [key, { uid }] of this.#claims) if (!known.has(uid)) this.#claims.delete(key);
    for (const uid of this.#waiting) if (!known.has(uid)) this.#waiting.delete(uid);
    for (const uid of this.#interest.keys()) if (!known.has(uid)) this.#interest.delete(uid);
    this.#losses.retain(new Set(this.deps.containers().map(({ id }) => id)));
    this.#look();
    const held = JSON.stringify(this.#holders());
    if (held !== this.#held && this.#waiting.size > 0) this.deps.wake([...this.#waiting]);
    this.#held = held;
  }

  /** The node's: devices cannot be watched. */
  condition(): { readonly reason: 'WatchDegraded'; readonly message: string } | undefined {
    return this.#degraded === undefined ? undefined : { reason: 'WatchDegraded', message: this.#degraded };
  }

  #choose(desired: DesiredPod, container: string, wanted: ReadonlyMap<string, number>): Extract<Choice, { readonly ok: true }> {
    const { uid, namespace, name } = desired;
    this.#care(desired);
    const devices = this.#look();
    const holders = this.#holders();
    const others = holders.filter((h) => !isFree(h, desired, container));
    const lost = this.#lost(devices).filter(({ holder }) => !isFree(holder, desired, container));
    const before = holders.find((h) => h.uid === uid && h.container === container)?.given ?? [];
    const choice = choose({ wanted, before }, others, lost, devices);
    if (!choice.ok) {
      this.#waiting.add(uid);
      throw new HeldBack('WaitingForDevice', waitingText(choice, this.deps.classes()), lookAgainMs);
    }
    this.#waiting.delete(uid);
    this.#claims.set(holderKey(uid, container), { uid, pod: `${namespace}/${name}`, container, given: choice.given });
    return choice;
  }

  #care(desired: DesiredPod): void {
    this.#interest.set(desired.uid, classesOf(desired));
  }

  #holders(): readonly Holder[] {
    const { containers, holds } = this.deps;
    return holdersOf(containers(), this.#claims, holds);
  }

  #lost({ isThere }: Devices): readonly Lost[] {
    return lostOf(this.#holders(), isThere, this.#losses.spares());
  }

  /** What is there now, asked once for each class. Nothing of it is remembered. */
  #devices(): Devices & { readonly scan: (deviceClass: string) => Scan } {
    const { files, classes } = this.deps;
    const all = classes();
    const scans = new Map<string, Scan>();
    const scan = (name: string): Scan => {
      const known = scans.get(name) ?? scanClass(files, Object.hasOwn(all, name) ? (all[name] ?? []) : []);
      scans.set(name, known);
      return known;
    };
    const isThere = ({ node, kind, major, minor, inode }: Given): boolean => {
      const entry = files.look(node);
      return entry?.kind === kind && entry.major === major && entry.minor === minor && entry.inode === inode;
    };
    return { scan, membersOf: (name) => scan(name).members, isThere };
  }

  /** Looks at all that pods care for, watches it, takes note of what is gone, and wakes those whom a change concerns. */
  #look(): Devices {
    const wanted = [...new Set([...this.#interest.values()].flatMap((classes) => [...classes]))];
    const holders = this.#holders();
    let devices = this.#devices();
    // what changed before a watch was there, nobody heard
    for (let arms = 0; arms < mostArms && this.#watch.set(foldersOf(wanted, holders, devices.scan)); arms++) devices = this.#devices();
    this.#losses.takeNote(holders, devices.isThere, (name) => this.#members.get(name)?.keys ?? new Set());
    const changed = this.#remember(wanted, devices.membersOf);
    const uids = [...this.#interest].flatMap(([uid, classes]) => ([...classes].some((name) => changed.has(name)) ? [uid] : []));
    if (uids.length > 0) this.deps.wake(uids);
    return devices;
  }

  /** The classes that are not as they were. */
  #remember(wanted: readonly string[], membersOf: MembersOf): ReadonlySet<string> {
    const before = this.#members;
    this.#members = new Map(
      wanted.map((name) => {
        const members = membersOf(name);
        return [name, { text: JSON.stringify(members), keys: new Set(members.map(keyOf)) }];
      }),
    );
    for (const [name, { keys }] of this.#members) this.#arrivals.seen(before.get(name)?.keys, keys);
    return new Set(wanted.filter((name) => before.has(name) && before.get(name)?.text !== this.#members.get(name)?.text));
  }

  #tellGone({ uid, pod, container }: Holder, { deviceClass, paths, node }: Given): void {
    const [namespace = '', name = ''] = pod.split('/');
    const what = `${paths[0] ?? node} (class ${deviceClass}, ${node})`;
    const text = `${what} is gone; the container goes on without it, and starts again when it is back`;
    this.deps.event({ uid, namespace, name }, container, 'Warning', 'DeviceGone', text);
    this.deps.log.info({ pod, container, node }, 'a device of a running container is gone');
  }

  /** Until what a container lost, or what could take its place, is open to it or stays closed. Whom its image makes it is not known here. */
  #settlesInMs({ pod }: DesiredPod, name: string, { gone }: Lost, membersOf: MembersOf): number {
    const container = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].find((c) => c.name === name);
    if (container === undefined) return 0;
    const members = [...new Set(gone.map((g) => g.deviceClass))].flatMap((deviceClass) => [...membersOf(deviceClass)]);
    return this.#arrivals.settlesInMs(closedMembers(userOf({ pod }, container), container, members));
  }
}

function foldersOf(wanted: readonly string[], holders: readonly Holder[], scan: (deviceClass: string) => Scan): Map<string, RegExp[]> {
  const folders = new Map<string, RegExp[]>();
  if (wanted.length === 0) return folders;
  for (const name of wanted) {
    for (const [folder, patterns] of scan(name).interest) folders.set(folder, [...(folders.get(folder) ?? []), ...patterns]);
  }
  for (const { given } of holders) for (const { node } of given) noteNode(folders, node);
  return folders;
}
