/**
 * The CPU manager: which CPUs each container runs on, under the policies `none` (all on all) and `static`.
 *
 * Owns who has which CPUs for itself, in memory and as a checkpoint on the card; the runtime's containers follow. A Guaranteed pod gets its
 * CPUs as a whole before its first container is made, and keeps them while it may start again; all others run on the rest and are moved when
 * that changes. Whether there are enough is admission's question (api/exclusiveCpus.ts counts); here a pod at most waits for one that ends.
 * A restart of the agent moves nobody: what the checkpoint says is what the containers have. A checkpoint that does not fit the machine or the
 * policy any more is told and made anew from what runs. Never starts or ends a container, and never writes a cgroup itself.
 * Mirrors kubelet v1.32 cm/cpumanager (facts 11.7), which stops at such a checkpoint and moves containers only every 10 s.
 */
import { cpuListText, parseCpuList } from '../api/cpuList.ts';
import type { DesiredPod } from '../api/desired.ts';
import { type CpuClaim, cpuClaims, notEnoughCpus } from '../api/exclusiveCpus.ts';
import type { PodUid } from '../api/objects.ts';
import { HeldBack } from '../container/heldBack.ts';
import { isNotFound, type Runtime } from '../container/runtime.ts';
import type { ContainerId, RuntimePodStatus } from '../container/words.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import { type CpuPlace, takeCpus } from './cpuAssign.ts';
import { type CpuEntries, type CpuGround, checkpointOf, readCheckpoint } from './cpuCheckpoint.ts';
import { isOver, sharedCpus, shareOf } from './cpuShares.ts';

export interface CpuManagerDeps {
  readonly policy: 'none' | 'static';
  /** reservedSystemCPUs as it is written; '': so many CPUs as `reservedMilli` comes to, rounded up. */
  readonly reservedCpus: string;
  /** CPU of systemReserved and kubeReserved together. */
  readonly reservedMilli: number;
  /** The kernel can keep containers to CPUs: it has the cpuset controller. */
  readonly cpuset: boolean;
  readonly topology: () => Promise<readonly CpuPlace[]>;
  readonly store: Store;
  readonly log: Log;
  readonly runtime: Pick<Runtime, 'updateContainerResources'>;
  /** Instances that have not ended, ending ones too. */
  readonly active: () => readonly DesiredPod[];
  /** What the runtime has of ours, as it was last shown; also of pods that are no instance any more. */
  readonly statuses: () => Iterable<RuntimePodStatus>;
  readonly statusOf: (uid: PodUid) => RuntimePodStatus | undefined;
  /** CPUs that these wait for may be free. */
  readonly wake: (uids: readonly PodUid[]) => void;
  /** A warning of the node itself. */
  readonly event: (reason: string, message: string) => void;
}

const key = 'cpus';
/** Its end wakes who waits for its CPUs; this is for an end that nobody saw. */
const lookAgainMs = 60_000;

type Entries = Map<PodUid, ReadonlyMap<string, readonly number[]>>;

export class CpuManager {
  #topology: readonly CpuPlace[] = [];
  #ground: CpuGround | undefined;
  #entries: Entries = new Map();
  /** What containers were given last; of others the runtime says it. */
  #given = new Map<ContainerId, Given>();
  /** An earlier agent kept a checkpoint, and the policy is `none` now: all are moved back. */
  #widens = false;
  #moving: Promise<void> | undefined;
  #moveAgain = false;
  /** Moves that failed, by the container, so that each trouble is told once. */
  #troubles = new Map<ContainerId, string>();
  /** Pods that wait for CPUs of others. */
  #waiting = new Set<PodUid>();
  /** Pods that run without CPUs of their own, since there are too few: said once. */
  #sharing = new Set<PodUid>();
  /** What was found while nobody could be told. */
  #untold: (readonly [reason: string, message: string])[] = [];
  /** As it was stored last. */
  #keptText = '';
  #stopped = false;

  constructor(private readonly deps: CpuManagerDeps) {}

  /** Reads the machine and what was kept. Never rejects: where that fails, the policy has no effect, which is told. */
  async load(): Promise<void> {
    const { deps } = this;
    try {
      if (deps.policy === 'none') {
        this.#widens = (await stored(deps.store)) !== undefined;
        if (this.#widens) this.#topology = await deps.topology();
        return;
      }
      if (!deps.cpuset) throw new Error('the kernel has no cpuset controller');
      this.#topology = await deps.topology();
      const online = this.#topology.map((p) => p.cpu);
      const ground = { online, reserved: this.#reserve(online) };
      const kept = await this.#kept(ground);
      this.#entries = new Map(kept);
      this.#ground = ground;
      if (kept !== undefined) this.#keptText = JSON.stringify(checkpointOf(ground, kept));
    } catch (e) {
      this.#widens = false;
      this.#untold.push(['CPUManagerFailed', `the CPU manager has no effect: ${describeError(e)}`]);
      deps.log.error({ error: describeError(e) }, 'the CPU manager has no effect');
    }
  }

  /** How many CPUs can be given to containers for themselves; undefined: the policy gives none. */
  exclusiveCpus(): number | undefined {
    return this.#ground && this.#ground.online.length - this.#ground.reserved.length;
  }

  /** Who has which CPUs, as lists, and what all others run on; undefined: all run on all. */
  view(): { readonly shared: string; readonly reserved: string; readonly exclusive: CpuEntries } | undefined {
    if (this.#ground === undefined) return undefined;
    return {
      shared: cpuListText(sharedCpus(this.#ground, this.#entries)),
      reserved: cpuListText(this.#ground.reserved),
      exclusive: this.#entries,
    };
  }

  /** The CPUs of a container that is about to be made, as a list; undefined: all. Rejects with HeldBack while its pod's are another's. */
  async cpusFor(desired: DesiredPod, container: string): Promise<string | undefined> {
    if (this.#ground === undefined) return undefined;
    const claims = this.#claims(desired, container);
    // one that was edited may have had some
    if (claims.length > 0 || this.#entries.has(desired.uid)) {
      this.#adopt();
      const trouble = this.#share(desired, claims);
      if (trouble !== undefined) {
        this.#waiting.add(desired.uid);
        throw new HeldBack('WaitingForCPUs', trouble, lookAgainMs);
      }
      await this.#keep();
      this.#move();
    }
    return this.#wanted(desired.uid, container);
  }

  /** A container was made with these CPUs. */
  made(uid: PodUid, container: string, id: ContainerId, cpus: string | undefined): void {
    if (this.#ground === undefined) return;
    // its predecessor has ended
    for (const [before, of] of this.#given) if (of.uid === uid && of.container === container) this.#given.delete(before);
    this.#given.set(id, { uid, container, cpus, started: false, early: false });
    // the rest changed while it was being made
    if (this.#wanted(uid, container) !== cpus) this.#move();
  }

  /** It was started. A move while it was starting may have come too late for its process, and is made once more. */
  started(id: ContainerId): void {
    const given = this.#given.get(id);
    if (given === undefined) return;
    this.#given.set(id, { ...given, started: true, early: false, cpus: given.early ? undefined : given.cpus });
    if (given.early) this.#move();
  }

  /** Nothing of the instance runs any more, and nothing of it starts again. */
  release(uid: PodUid): void {
    this.#waiting.delete(uid);
    this.#sharing.delete(uid);
    if (this.#entries.delete(uid)) this.#changed();
  }

  /** A round: `known` has all pods there are; what others have is free. What could not be moved is tried again. */
  retain(known: ReadonlySet<PodUid>): void {
    for (const [reason, message] of this.#untold.splice(0)) this.deps.event(reason, message);
    if (this.#ground === undefined && !this.#widens) return;
    for (const [id, { uid }] of this.#given) if (!known.has(uid)) this.#given.delete(id);
    for (const { containers } of this.deps.statuses()) {
      for (const { id, state } of containers) if (state === 'exited' && this.#given.delete(id)) this.#troubles.delete(id);
    }
    for (const of of [this.#waiting, this.#sharing]) for (const uid of of) if (!known.has(uid)) of.delete(uid);
    if (this.#ground !== undefined) this.#takeBack(known);
    this.#adopt();
    this.#changed();
  }

  /** A move that is under way ends by itself. */
  stop(): void {
    this.#stopped = true;
  }

  /** Who has which CPUs may be different: it is kept, containers follow, and who waits asks again. */
  #changed(): void {
    void this.#keep().then((wrote) => {
      if (!wrote || this.#waiting.size === 0) return;
      const waiting = [...this.#waiting];
      this.#waiting.clear();
      this.deps.wake(waiting);
    }); // it never rejects
    this.#move();
  }

  /** Its claims, but for containers that have ended for good; the one that is about to be made is none of those. */
  #claims({ pod, uid }: DesiredPod, starting?: string): readonly CpuClaim[] {
    const claims = cpuClaims(pod);
    if (claims.length === 0) return claims;
    const status = this.deps.statusOf(uid);
    return claims.filter(({ container }) => container === starting || !isOver(pod, container, status));
  }

  /** CPUs of pods that are gone or have ended, of containers that have, and of those that ask for none any more. */
  #takeBack(known: ReadonlySet<PodUid>): void {
    const active = new Map(this.deps.active().map((p) => [p.uid, p]));
    for (const [uid, sets] of this.#entries) {
      const pod = active.get(uid);
      if (!known.has(uid) || (pod === undefined && !runs(this.deps.statusOf(uid)))) this.#entries.delete(uid);
      else if (pod !== undefined) {
        const claiming = new Set(this.#claims(pod).map((c) => c.container));
        this.#have(uid, new Map([...sets].filter(([container]) => claiming.has(container))));
      }
    }
  }

  #have(uid: PodUid, sets: ReadonlyMap<string, readonly number[]>): void {
    if (sets.size === 0) this.#entries.delete(uid);
    else this.#entries.set(uid, sets);
  }

  /** Gives a pod its CPUs, all or none; returns why it cannot have them. */
  #share(desired: DesiredPod, claims: readonly CpuClaim[]): string | undefined {
    if (this.#ground === undefined) return undefined;
    const { uid } = desired;
    const runsOn = (container: string) => ownCpus(this.deps.statusOf(uid), container);
    const share = shareOf(uid, claims, { ...this.#ground, topology: this.#topology, entries: this.#entries, runsOn });
    if (!('sets' in share)) return notEnoughCpus(share.requested, share.available);
    this.#have(uid, share.sets);
    this.#sharing.delete(uid);
    return undefined;
  }

  /** Pods that run without CPUs of their own, since what was kept of them is lost: first those that can keep the CPUs they run on. */
  #adopt(): void {
    if (this.#ground === undefined) return;
    const without = this.deps.active().filter((p) => !this.#entries.has(p.uid) && runs(this.deps.statusOf(p.uid)));
    const wanting = without.map((desired) => ({ desired, claims: this.#claims(desired) })).filter((p) => p.claims.length > 0);
    const keeps = ({ desired, claims }: (typeof wanting)[number]): boolean =>
      claims.some((c) => ownCpus(this.deps.statusOf(desired.uid), c.container)?.length === c.cpus);
    for (const pod of [...wanting.filter(keeps), ...wanting.filter((p) => !keeps(p))]) {
      const trouble = this.#share(pod.desired, pod.claims);
      if (trouble === undefined || this.#sharing.has(pod.desired.uid)) continue;
      this.#sharing.add(pod.desired.uid);
      this.deps.log.warn({ pod: pod.desired.name, trouble }, 'a running pod has no CPUs of its own');
    }
  }

  /** Writes what changed; true: something had. Never rejects: what is not kept is made anew from what runs. */
  async #keep(): Promise<boolean> {
    if (this.#ground === undefined) return false;
    const checkpoint = checkpointOf(this.#ground, this.#entries);
    const text = JSON.stringify(checkpoint);
    if (text === this.#keptText) return false;
    const before = this.#keptText;
    this.#keptText = text;
    try {
      await this.deps.store.put(key, checkpoint);
    } catch (e) {
      // the next change, or the next round, tries again
      if (this.#keptText === text) this.#keptText = before;
      this.deps.log.warn({ error: describeError(e) }, 'who has which CPUs could not be stored');
    }
    return true;
  }

  /** undefined: nothing that can be used. */
  async #kept(ground: CpuGround): Promise<CpuEntries | undefined> {
    const value = await stored(this.deps.store);
    if (value === undefined) return undefined;
    const read = value === unreadable ? 'it cannot be read' : readCheckpoint(value, ground);
    if (typeof read !== 'string') return read;
    const message = `what was kept of the CPU manager does not hold any more: ${read}; it is made anew from what runs`;
    this.deps.log.warn({ why: read }, 'what was kept of the CPU manager does not hold any more');
    this.#untold.push(['CPUStateReset', message]);
    return undefined;
  }

  /** What is never given away; one CPU at least. */
  #reserve(online: readonly number[]): readonly number[] {
    const { reservedCpus, reservedMilli } = this.deps;
    const named = parseCpuList(reservedCpus) ?? [];
    const here = named.filter((cpu) => online.includes(cpu));
    if (named.length > here.length)
      this.#untold.push(['CPUManagerFailed', `reservedSystemCPUs ${reservedCpus}: this machine has CPUs ${cpuListText(online)}`]);
    if (here.length > 0) return here;
    const count = Math.min(online.length, Math.max(1, Math.ceil(reservedMilli / 1000)));
    return takeCpus(this.#topology, online, count) ?? online;
  }

  #wanted(uid: PodUid, container: string): string | undefined {
    if (this.#ground === undefined) return this.#widens ? cpuListText(this.#topology.map((p) => p.cpu)) : undefined;
    return cpuListText(this.#entries.get(uid)?.get(container) ?? sharedCpus(this.#ground, this.#entries));
  }

  /** One after the other, and once more when something changed meanwhile. */
  #move(): void {
    this.#moveAgain = true;
    if (this.#moving !== undefined || this.#stopped) return;
    this.#moving = this.#moveAll().finally(() => {
      this.#moving = undefined;
    });
  }

  async #moveAll(): Promise<void> {
    let failed = false;
    while (this.#moveAgain && !this.#stopped) {
      this.#moveAgain = false;
      failed = false;
      for (const c of this.#movable()) {
        if (this.#stopped) return;
        const wanted = this.#wanted(c.uid, c.container);
        if (wanted === undefined || wanted === c.cpus) continue;
        if (!(await this.#moveOne(c, wanted))) failed = true;
      }
    }
    if (!this.#widens || failed || this.#stopped) return;
    this.#widens = false;
    await this.deps.store
      .remove(key)
      .catch((e) => this.deps.log.warn({ error: describeError(e) }, 'what was kept of the CPU manager could not be removed'));
  }

  async #moveOne({ uid, container, id }: Movable, cpus: string): Promise<boolean> {
    const { deps } = this;
    const early = this.#given.get(id)?.started === false;
    try {
      await deps.runtime.updateContainerResources(id, { cpusetCpus: cpus });
      const started = this.#given.get(id)?.started ?? true;
      this.#troubles.delete(id);
      // started meanwhile: which of the two the runtime did first, nobody can say
      const again = early && started;
      this.#given.set(id, { uid, container, cpus: again ? undefined : cpus, started, early: early && !started });
      if (again) this.#moveAgain = true;
      return true;
    } catch (e) {
      if (isNotFound(e)) {
        this.#given.delete(id);
        return true;
      }
      const text = describeError(e);
      if (this.#troubles.get(id) !== text) {
        this.#troubles.set(id, text);
        deps.event('CPUManagerFailed', `container ${container} could not be moved to CPUs ${cpus}: ${text}`);
      }
      return false;
    }
  }

  /** All that run or may start as they were made, with the CPUs they have as far as that is known. */
  #movable(): readonly Movable[] {
    const found = new Map<ContainerId, Movable>();
    for (const [id, { uid, container, cpus }] of this.#given) found.set(id, { id, uid, container, cpus });
    for (const { uid, containers } of this.deps.statuses()) {
      for (const { id, name, state, cpusetCpus } of containers) {
        if (state === 'exited') found.delete(id);
        else if (!found.has(id)) found.set(id, { id, uid, container: name, cpus: canonical(cpusetCpus) });
      }
    }
    return [...found.values()];
  }
}

interface Given {
  readonly uid: PodUid;
  readonly container: string;
  /** undefined: nobody knows. */
  readonly cpus: string | undefined;
  readonly started: boolean;
  /** It was moved before it was started. */
  readonly early: boolean;
}

interface Movable {
  readonly id: ContainerId;
  readonly uid: PodUid;
  readonly container: string;
  /** undefined: nobody knows. */
  readonly cpus: string | undefined;
}

const unreadable = Symbol('unreadable');

/** What the store has under our key; a damaged entry is there, too. */
async function stored(store: Store): Promise<unknown> {
  try {
    return await store.get(key);
  } catch {
    return unreadable;
  }
}

const runs = (status: RuntimePodStatus | undefined): boolean => status?.containers.some((c) => c.state === 'running') === true;

/** What a running container runs on, where the runtime says it. */
function ownCpus(status: RuntimePodStatus | undefined, container: string): readonly number[] | undefined {
  const newest = status?.containers.find((c) => c.name === container);
  if (newest?.state !== 'running' || newest.cpusetCpus === undefined) return undefined;
  return parseCpuList(newest.cpusetCpus);
}

const canonical = (list: string | undefined): string | undefined => {
  const cpus = list === undefined ? undefined : parseCpuList(list);
  return cpus === undefined || cpus.length === 0 ? undefined : cpuListText(cpus);
};
