/**
 * Which instances there are: desired ones and those still ending, what was told of each in this run, who waits until when.
 * The loop's memory between an update and the end of what it began; decides nothing, and forgets an instance when its worker has ended.
 */
import type { DesiredPod } from './api/desired.ts';
import type { KeyText, PodUid } from './api/objects.ts';
import type { PodManager } from './pod/manager.ts';
import type { Clock, Monotonic } from './world/clock.ts';
import { after } from './world/clock.ts';

interface Instance {
  readonly desired: DesiredPod;
  /** Its status was told in this run. */
  told: boolean;
  /** The end of what it waits for: a back-off, a deadline. */
  retryAt: Monotonic | undefined;
}

export class Instances {
  #known = new Map<PodUid, Instance>();

  constructor(
    private readonly clock: Clock,
    private readonly pods: PodManager,
  ) {}

  set(pod: DesiredPod): void {
    this.pods.set(pod);
    const before = this.#known.get(pod.uid);
    this.#known.set(pod.uid, { told: false, retryAt: undefined, ...before, desired: pod });
  }

  /** No longer desired; it may still be ending. */
  remove(uid: PodUid): void {
    this.pods.remove(uid);
    const instance = this.#known.get(uid);
    if (instance === undefined) return;
    instance.retryAt = undefined;
  }

  /** Its worker has ended, and nobody wants it. */
  forget(uid: PodUid): DesiredPod | undefined {
    const desired = this.get(uid);
    this.#known.delete(uid);
    return desired;
  }

  get(uid: PodUid): DesiredPod | undefined {
    return this.#known.get(uid)?.desired;
  }

  /** The newest of its key. */
  byKey(key: KeyText): DesiredPod | undefined {
    return this.pods.byKey(key) ?? [...this.#known.values()].find((i) => i.desired.key === key)?.desired;
  }

  uids(): PodUid[] {
    return [...this.#known.keys()];
  }

  list(): DesiredPod[] {
    return [...this.#known.values()].map((i) => i.desired);
  }

  keys(): KeyText[] {
    return [...this.#known.values()].map((i) => i.desired.key);
  }

  /** True when it is the first telling of this run. */
  tell(uid: PodUid): boolean {
    const instance = this.#known.get(uid);
    if (instance === undefined || instance.told) return false;
    instance.told = true;
    return true;
  }

  wasTold(uid: PodUid): boolean {
    return this.#known.get(uid)?.told === true;
  }

  /** `ms` from now something it waits for ends; undefined: it waits for nothing. */
  waits(uid: PodUid, ms: number | undefined): void {
    const instance = this.#known.get(uid);
    if (instance !== undefined) instance.retryAt = ms === undefined ? undefined : after(this.clock.monotonic(), ms);
  }

  secondsToRetry(uid: PodUid): number | undefined {
    const retryAt = this.#known.get(uid)?.retryAt;
    return retryAt === undefined ? undefined : (retryAt - this.clock.monotonic()) / 1000;
  }
}
