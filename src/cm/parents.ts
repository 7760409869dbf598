/**
 * The cgroups above the pods': that of all pods and those of the QoS classes. Owns nothing but what it wrote last. Brought up to date when a pod
 * comes or goes, and looked at every minute; written only when something differs.
 * Mirrors kubelet v1.32 cm/node_container_manager_linux.go and qos_container_manager_linux.go (facts 11.3, 11.4).
 */
import type { Driver } from 'cgroup-ts';
import type { DesiredPod } from '../api/desired.ts';
import { describeError } from '../world/log.ts';
import { bestEffortLimits, burstableLimits, nodeLimits, type PodsAmounts } from './hierarchy.ts';
import { differs, isWhole } from './looks.ts';
import { type CgroupName, nodeGroup, qosGroup } from './names.ts';
import { heldBy, type Limits, type PodLimitSettings, sameLimits } from './podLimits.ts';

export interface ParentsDeps {
  readonly settings: Pick<PodLimitSettings, 'hugepages' | 'pageBytes'> & { readonly root: CgroupName; readonly may: PodsAmounts };
  readonly controllers: () => ReadonlySet<string>;
  readonly active: () => readonly DesiredPod[];
  readonly nodeEvent: (type: 'Normal' | 'Warning', reason: string, message: string) => void;
  /** Controllers that the kernel has and does not hand on. */
  readonly refused: (controllers: readonly string[]) => void;
}

interface Level {
  readonly name: CgroupName;
  readonly limits: Limits;
}

export class Parents {
  #stands = new Map<string, Limits>();
  #turn: Promise<unknown> = Promise.resolve();
  #lastFailure = '';

  constructor(private readonly deps: ParentsDeps) {}

  /** All are there when it resolves. Rejects when one of a QoS class cannot be made. */
  ensure(driver: Driver): Promise<void> {
    return this.#inTurn(() => this.#update(driver, false));
  }

  /** `look`: what others wrote there since is put right, and what they removed is made again. */
  refresh(driver: Driver, look: boolean): Promise<void> {
    return this.#inTurn(() => this.#update(driver, look));
  }

  /** One at a time: two would each count on what the other has half made. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    const mine = this.#turn.then(work);
    this.#turn = mine.catch(() => {}); // whoever asked is told
    return mine;
  }

  async #update(driver: Driver, look: boolean): Promise<void> {
    const { settings, active, nodeEvent } = this.deps;
    const { root, may, hugepages } = settings;
    try {
      const wrote = await this.#level(driver, { name: nodeGroup(root), limits: nodeLimits(may, settings) }, look);
      if (wrote) nodeEvent('Normal', 'NodeAllocatableEnforced', 'Updated Node Allocatable limit across pods');
      this.#lastFailure = '';
    } catch (e) {
      const failure = describeError(e);
      if (failure !== this.#lastFailure) {
        const path = driver.cgroupParent(nodeGroup(root));
        nodeEvent('Warning', 'FailedNodeAllocatableEnforcement', `Failed to update Node Allocatable Limits "${path}": ${failure}`);
      }
      this.#lastFailure = failure;
      if (!(await driver.exists(nodeGroup(root)))) throw e;
    }
    const pods = active().map(({ pod }) => pod);
    await this.#level(driver, { name: qosGroup(root, 'Burstable'), limits: burstableLimits(pods, hugepages) }, look);
    await this.#level(driver, { name: qosGroup(root, 'BestEffort'), limits: bestEffortLimits(hugepages) }, look);
  }

  /** Whether anything was written. What differs is looked for first: systemd would be asked even where nothing does. */
  async #level(driver: Driver, { name, limits }: Level, look: boolean): Promise<boolean> {
    const { controllers, refused } = this.deps;
    const key = driver.cgroupParent(name);
    const stands = this.#stands.get(key);
    if (stands !== undefined && !look && sameLimits(stands, heldBy(limits, controllers()))) return false;
    if (!(await isWhole(driver, name, controllers()))) refused((await driver.create(name)).refused.map((r) => r.controller));
    // what is not handed on cannot be written
    const wanted = heldBy(limits, controllers());
    const wrong = await differs(driver, name, wanted);
    if (wrong) await driver.update(name, wanted);
    this.#stands.set(key, wanted);
    return wrong;
  }
}
