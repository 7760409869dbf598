/**
 * The cgroups of this node: the one of all pods, those of the QoS classes and of each pod, with their limits. Owns which pods have a cgroup made
 * here and what stands in it (in runDir: cgroups and that file end together with the boot).
 *
 * A pod's cgroup is made before its sandbox, its limits rise before and fall after a container is replaced, and it goes when the pod has ended
 * for good. Containers are the runtime's business; nothing here starts or moves one. Where cgroups are not ours to make (cgroup v1, a read-only
 * file system) nothing is ever written, every pod runs, and what cannot be enforced is told (`LimitsNotEnforced`).
 * A pod that runs elsewhere than it should stays there until its next sandbox; the kubelet kills it.
 * Mirrors kubelet v1.32 cm/{pod_container_manager,qos_container_manager,node_container_manager}_linux.go (facts 11).
 */
import { codeOf as cgroupCode, type Driver } from 'cgroup-ts';
import type { DesiredPod } from '../api/desired.ts';
import type { PodUid } from '../api/objects.ts';
import { type CgroupDriver, qosClass } from '../api/resources.ts';
import type { Clock } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import { type CgroupFacts, type KernelLine, limitsNotEnforced, type NodeProblem, nodeProblems } from './enforced.ts';
import type { PodsAmounts } from './hierarchy.ts';
import { holdMemory } from './looks.ts';
import { type CgroupName, podGroup, qosClasses } from './names.ts';
import { Orphans } from './orphans.ts';
import { Parents } from './parents.ts';
import { heldBy, type Limits, type PodLimitSettings, podLimits, risen, sameLimits } from './podLimits.ts';
import { type PodGroup, PodGroups } from './records.ts';

export interface ContainerManagerSettings extends PodLimitSettings {
  /** `cgroupRoot`, in components. */
  readonly root: CgroupName;
  /** `cgroupsPerQOS`; false: no cgroups are made here. */
  readonly perQos: boolean;
  /** What all pods together may have. */
  readonly may: PodsAmounts;
}

export interface ContainerManagerDeps {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Log;
  /** runDir. */
  readonly store: Pick<Store, 'get' | 'put'>;
  readonly settings: ContainerManagerSettings;
  /** What the kernel offers. */
  readonly facts: CgroupFacts;
  readonly kernelLine: () => KernelLine;
  /** How the runtime makes cgroups; undefined: it has not answered yet. */
  readonly driver: () => Promise<CgroupDriver | undefined>;
  readonly makeDriver: (kind: CgroupDriver) => Driver;
  /** Pods that are let in and have not ended. */
  readonly active: () => readonly DesiredPod[];
  readonly event: (desired: DesiredPod, type: 'Normal' | 'Warning', reason: string, message: string) => void;
  readonly nodeEvent: (type: 'Normal' | 'Warning', reason: string, message: string) => void;
  /** The node's problems are others than before. */
  readonly conditionsChanged: () => void;
  /** Looks after the agent and the runtime; left out: nobody does. */
  readonly protect?: (again: boolean) => void;
}

/** Not ours to write: pods run all the same. */
const notOurs: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'EROFS']);

export class ContainerManager {
  #facts: CgroupFacts;
  /** The same for the whole boot. */
  #line: KernelLine | undefined;
  #drivers = new Map<CgroupDriver, Driver>();
  #kind: CgroupDriver | undefined;
  #groups: PodGroups;
  #parents: Parents;
  #orphans: Orphans;
  /** They run in another cgroup than the one they should be in. */
  #elsewhere = new Set<PodUid>();
  /** By instance: what was told of it. */
  #told = new Map<PodUid, string>();

  constructor(private readonly deps: ContainerManagerDeps) {
    const { clock, log, store, settings, active, nodeEvent } = deps;
    this.#facts = deps.facts;
    this.#groups = new PodGroups({ log, store });
    this.#parents = new Parents({
      ...{ settings, active, nodeEvent },
      controllers: () => this.#facts.controllers,
      refused: (names) => this.#lost(names),
    });
    this.#orphans = new Orphans({ clock, log, root: settings.root, groups: this.#groups, remove: (uid) => this.removePod(uid) });
  }

  /** Reads what an earlier agent of this boot made. Never rejects. */
  async load(): Promise<void> {
    await this.#groups.load();
    const { version, controllers, refused } = this.#facts;
    this.deps.log.debug({ version, controllers: [...controllers].join(' '), ...(refused !== undefined && { refused }) }, 'cgroups');
  }

  /** The runtime answers, for the first time or again: the node's cgroups are made, the runtime is protected. Never rejects. */
  async runtimeUp(): Promise<void> {
    this.deps.protect?.(true);
    await this.#refresh(true);
  }

  /** What the kernel offers, as far as it turned out to be true. */
  facts(): CgroupFacts {
    return this.#facts;
  }

  /**
   * The pod's cgroup is there when it resolves, with limits that are not lower than wanted. `runs`: something of the pod runs already. Says
   * whether `podProblem` has another answer than before. Rejects with why the pod cannot be started.
   */
  async ensurePod(desired: DesiredPod, { runs }: { readonly runs: boolean }): Promise<boolean> {
    const before = this.podProblem(desired);
    this.#groups.touch(desired.uid);
    if (this.makes()) await this.#ensure(desired, runs);
    const now = this.podProblem(desired);
    if (now !== undefined) this.#tell(desired, now, runs);
    return now !== before;
  }

  async #ensure(desired: DesiredPod, runs: boolean): Promise<void> {
    const driver = await this.#driver();
    if (driver === undefined) throw new Error('the runtime does not say yet how it makes cgroups');
    const { uid } = desired;
    const name = this.#nameOf(desired);
    const there = await driver.exists(name);
    if (!there && runs) {
      this.#elsewhere.add(uid);
      return;
    }
    this.#elsewhere.delete(uid);
    const known = this.#groups.get(uid);
    const stands = there && known?.driver === driver.kind ? known.limits : undefined;
    const wanted = this.#wanted(desired);
    const next = stands === undefined ? wanted : risen(stands, wanted);
    if (stands !== undefined && sameLimits(stands, next)) return;
    try {
      // of a sandbox before, which the runtime made elsewhere
      if (known !== undefined && known.driver !== driver.kind) await this.#driverOf(known.driver).remove(known.name);
      await this.#write(driver, { uid, name, driver: driver.kind, limits: next }, stands === undefined);
    } catch (e) {
      if (notOurs.has(cgroupCode(e) ?? '')) return this.#refuse(describeError(e));
      this.deps.event(desired, 'Warning', 'FailedCreatePodContainer', `unable to ensure pod container exists: ${describeError(e)}`);
      throw new Error(`the pod's cgroup cannot be made: ${describeError(e)}`);
    }
  }

  /** Containers are as wanted now: limits that fell are written. Rejects when one cannot be. */
  async updatePod(desired: DesiredPod): Promise<void> {
    const known = this.#groups.get(desired.uid);
    if (!this.makes() || known === undefined || this.#elsewhere.has(desired.uid)) return;
    const wanted = this.#wanted(desired);
    if (!sameLimits(known.limits, wanted)) await this.#write(this.#driverOf(known.driver), { ...known, limits: wanted }, false);
  }

  /**
   * A pod that is about to be ended gets no more memory than it has: what it asks for beyond it waits. Straight into the kernel's file, for when
   * memory is short nothing is to be started for it. Never rejects.
   */
  async brake(uid: PodUid): Promise<void> {
    const known = this.#groups.get(uid);
    if (!this.makes() || known === undefined || this.#elsewhere.has(uid) || !this.#facts.controllers.has('memory')) return;
    try {
      await holdMemory(this.#driverOf(known.driver), known.name, this.deps.settings.pageBytes);
    } catch (e) {
      this.deps.log.warn({ uid, error: describeError(e) }, 'the memory of a pod that is evicted cannot be held');
    }
  }

  /** Ends what still runs in the pod's cgroup, and removes it. Rejects when it cannot go yet. */
  async removePod(uid: PodUid): Promise<void> {
    this.#elsewhere.delete(uid);
    this.#told.delete(uid);
    if (!this.makes()) return;
    const known = this.#groups.get(uid);
    const driver = known === undefined ? await this.#driver() : this.#driverOf(known.driver);
    if (driver === undefined) return;
    const names = known === undefined ? qosClasses.map((qos) => podGroup(this.deps.settings.root, qos, uid)) : [known.name];
    try {
      for (const name of names) if (await driver.exists(name)) await driver.remove(name);
    } catch (e) {
      // nobody waits for what can never be written any more; what may still be in it is the runtime's to end
      if (cgroupCode(e) !== 'EROFS') throw e;
      this.#refuse(describeError(e));
    }
    await this.#groups.forget(uid);
    await this.#refresh(false);
  }

  /** Cgroups of other pods than these go; those above the pods are looked at once more. Resolves when both are done, and never rejects. */
  async retain(known: ReadonlySet<PodUid>): Promise<void> {
    for (const uid of this.#told.keys()) if (!known.has(uid)) this.#told.delete(uid);
    for (const uid of this.#elsewhere) if (!known.has(uid)) this.#elsewhere.delete(uid);
    this.deps.protect?.(false);
    if (!this.makes()) return;
    await Promise.all([this.#orphans.round(known, () => this.#driver()), this.#refresh(true)]);
  }

  /** What of the pod's limits is not enforced: `memory`, `pod level`, `cgroup differs`; undefined: nothing. */
  podProblem(desired: DesiredPod): string | undefined {
    const { podPidsLimit, perQos } = this.deps.settings;
    return limitsNotEnforced(desired.pod, this.#facts, { podPidsLimit, perQos, elsewhere: this.#elsewhere.has(desired.uid) });
  }

  /** What of this machine keeps limits from being enforced, with what to change. */
  nodeProblems(): NodeProblem[] {
    this.#line ??= this.deps.kernelLine();
    return nodeProblems(this.#facts, this.#line);
  }

  /** How the runtime makes cgroups, as it said last; undefined: it has not yet. */
  kind(): CgroupDriver | undefined {
    return this.#kind;
  }

  /** Cgroups are made here. */
  makes(): boolean {
    return this.deps.settings.perQos && this.#facts.version === 'v2' && this.#facts.refused === undefined;
  }

  #nameOf({ pod, uid }: DesiredPod): CgroupName {
    return podGroup(this.deps.settings.root, qosClass(pod), uid);
  }

  #wanted({ pod }: DesiredPod): Limits {
    return heldBy(podLimits(pod, this.deps.settings), this.#facts.controllers);
  }

  async #driver(): Promise<Driver | undefined> {
    const kind = await this.deps.driver();
    this.#kind = kind ?? this.#kind;
    return kind && this.#driverOf(kind);
  }

  #driverOf(kind: CgroupDriver): Driver {
    const driver = this.#drivers.get(kind) ?? this.deps.makeDriver(kind);
    this.#drivers.set(kind, driver);
    return driver;
  }

  /** `make`: it is not there, or nobody knows what stands in it. */
  async #write(driver: Driver, group: PodGroup, make: boolean): Promise<void> {
    const limits = make ? await this.#make(driver, group) : group.limits;
    if (!make) await driver.update(group.name, limits);
    await this.#groups.put({ ...group, limits });
    await this.#refresh(false);
  }

  /** What stands in it then: less than asked for, where a level above does not hand a controller on. */
  async #make(driver: Driver, { name, limits }: PodGroup): Promise<Limits> {
    await this.#parents.ensure(driver);
    const held = heldBy(limits, this.#facts.controllers);
    try {
      await driver.create(name, held);
      return held;
    } catch (e) {
      if (cgroupCode(e) !== 'ENOENT') throw e;
    }
    this.#lost((await driver.create(name)).refused.map((r) => r.controller));
    const left = heldBy(limits, this.#facts.controllers);
    await driver.update(name, left);
    return left;
  }

  /** What asks of the QoS classes may be another sum now. `look`: also what others may have written there is put right. Never rejects. */
  async #refresh(look: boolean): Promise<void> {
    if (!this.makes()) return;
    try {
      const driver = await this.#driver();
      if (driver !== undefined) await this.#parents.refresh(driver, look);
    } catch (e) {
      if (notOurs.has(cgroupCode(e) ?? '')) this.#refuse(describeError(e));
      else this.deps.log.warn({ error: describeError(e) }, 'the cgroups above the pods cannot be brought up to date');
    }
  }

  #tell(desired: DesiredPod, problem: string, runs: boolean): void {
    if (this.#told.get(desired.uid) === problem) return;
    this.#told.set(desired.uid, problem);
    // of what ran before this agent it was told then; only a cgroup that differs is news
    if (!runs || this.#elsewhere.has(desired.uid)) this.deps.event(desired, 'Warning', 'LimitsNotEnforced', problem);
  }

  /** Cgroups are not ours to write after all. */
  #refuse(why: string): void {
    this.#facts = { ...this.#facts, refused: why };
    this.deps.log.warn({ error: why }, 'cgroups cannot be made here');
    this.deps.conditionsChanged();
  }

  /** The kernel has them, and does not hand them to the pods' cgroups. */
  #lost(controllers: readonly string[]): void {
    const left = [...this.#facts.controllers].filter((name) => !controllers.includes(name));
    if (left.length === this.#facts.controllers.size) return;
    this.#facts = { ...this.#facts, controllers: new Set(left) };
    this.deps.conditionsChanged();
  }
}
