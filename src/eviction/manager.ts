/**
 * Eviction: keeps the node alive by ending pods before the kernel, or a full card, ends what it likes.
 *
 * Owns which thresholds are met since when, which pressures the node is under, and when the next eviction may be. It looks, decides, reclaims,
 * and ends at most one pod; then it waits until the node has had time to show it. Who may run under a pressure is admission's; when an evicted
 * pod comes back is comeBack's.
 * For the disk the order is that of G9: dead logs, dead containers, images that nobody needs, and only then a pod, the largest writer, after a
 * second measurement. Memory and processes have nothing to give back but pods.
 * Mirrors kubelet v1.32 eviction_manager.go synchronize (facts 14.2), but: it looks when it is worth it instead of every 10 s, PSI and the pace
 * of a leak count, static pods are evicted like others (there are no others), and nobody is evicted in vain (ranking.ts).
 */
import type { EvictionThreshold } from '../api/evictionThresholds.ts';
import type { PodUid } from '../api/objects.ts';
import { conditionWords, type PressureType, pressureTypes } from '../api/pressures.ts';
import { isAbort } from '../async/abort.ts';
import { after, type Monotonic } from '../world/clock.ts';
import { describeError } from '../world/log.ts';
import { candidatesFor, offendersOf, type UsageNow } from './candidates.ts';
import type { EvictionDeps, EvictOptions } from './deps.ts';
import { Holds } from './holds.ts';
import { brokenLimit, hasLocalLimit } from './localLimits.ts';
import { longestLookMs, shortestLookMs } from './memory.ts';
import { binaryText, lowResourceMessage, reclaimMessage } from './messages.ts';
import { Observer } from './observer.ts';
import { type ActiveThreshold, noPressure, type PressureState, type PressureStep, pressureStep } from './pressure.ts';
import { pickPod } from './ranking.ts';
import { Reclaimer } from './reclaim.ts';
import { isDiskSignal, type Observations, type PodDiskUsage, type PressureCondition, pressureOf, resourceOf } from './words.ts';

const storeKey = 'eviction';
/** kubelet v1.32: an eviction of a hard threshold, or for a limit of the pod's own, does not wait. */
const immediateSeconds = 1;
const limitsMs = 60_000;
/** One event about the same shortage in so long a time. */
const sayAgainMs = 60_000;
/** Less than this is nothing: bytes, files, processes. */
const floors: Readonly<Record<ReturnType<typeof resourceOf>, number>> = {
  memory: 2 ** 20,
  'ephemeral-storage': 2 ** 16,
  inodes: 10,
  pids: 2,
};

export class Eviction {
  #observer: Observer;
  #thresholds: readonly EvictionThreshold[];
  #state: PressureState = noPressure;
  #pressures: readonly PressureType[] = [];
  #holds: Holds;
  #reclaimer: Reclaimer;
  /** What pods had written when the disk came near its threshold: what grew since is seen against it. */
  #firstDisk: ReadonlyMap<PodUid, PodDiskUsage> | undefined;
  #limitsAt: Monotonic;
  #said = new Map<string, Monotonic>();
  /** A pod is being ended: one at a time, whatever it is for, and what follows is decided on what the node is like then. */
  #busy = false;
  /** It ends by its own grace, which may be long: the looks go on, and a hard threshold does not wait for it. */
  #patient: { readonly uid: PodUid; readonly o: EvictOptions } | undefined;
  #stored = '';

  constructor(private readonly deps: EvictionDeps) {
    const hard = deps.thresholds.find((t) => t.kind === 'hard' && t.signal === 'memory.available');
    const ofPods: EvictionThreshold[] = hard && deps.node.podsMemory ? [{ ...hard, signal: 'allocatableMemory.available' }] : [];
    this.#thresholds = [...deps.thresholds, ...ofPods];
    this.#observer = new Observer({ clock: deps.clock, node: deps.node, thresholds: this.#thresholds });
    this.#holds = new Holds(deps.clock);
    this.#reclaimer = new Reclaimer({
      ...{ clock: deps.clock, log: deps.log, reclaim: deps.reclaim },
      hasSeparateImageDisk: () => this.#observer.hasSeparateImageDisk(),
      remeasure: async ({ threshold: { signal, kind } }) => {
        const { active } = this.#judge((await this.#observer.lookAtDisk()).observations);
        return active.find((a) => a.threshold.signal === signal && a.threshold.kind === kind);
      },
    });
    this.#limitsAt = after(deps.clock.monotonic(), limitsMs);
  }

  /** What an earlier agent of this boot knew of pressures. Never rejects. */
  async load(): Promise<void> {
    const { clock, log, store } = this.deps;
    try {
      const stored = (await store.get(storeKey)) as Partial<PressureState> | undefined;
      if (typeof stored?.met !== 'object' || typeof stored.seen !== 'object') return;
      const now = clock.monotonic();
      // what was met stood until a moment ago, for all anybody knows
      const types = new Set(
        Object.keys(stored.met).map((key) => pressureOf(key.slice(key.indexOf(' ') + 1) as EvictionThreshold['signal'])),
      );
      this.#state = { met: stored.met, seen: { ...stored.seen, ...Object.fromEntries([...types].map((type) => [type, now])) } };
      for (const type of types) this.#holds.takenOver(type);
      this.#take(pressureStep(this.#state, this.#thresholds, new Map(), now, this.deps.pressureTransitionMs));
    } catch (e) {
      log.warn({ error: describeError(e) }, 'what was known of pressures cannot be read');
    }
  }

  /** Looks for ever, at memory and at the disk beside each other. Resolves when aborted. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#watch(signal, () => this.lookAtMemory(signal)), this.#watch(signal, () => this.lookAtDisk(signal))]);
  }

  /** Under the node's conditions; always the three. */
  conditions(): readonly PressureCondition[] {
    return pressureTypes.map((type) => {
      const pressed = this.#pressures.includes(type);
      return { type, status: pressed ? 'True' : 'False', ...conditionWords(type, pressed) };
    });
  }

  /** What the node is under now, as admission names it. */
  pressures(): readonly PressureType[] {
    return this.#pressures;
  }

  /** One look at memory and processes, and what follows from it. Milliseconds until the next one. */
  async lookAtMemory(signal: AbortSignal): Promise<number> {
    const { observations, nextMs } = this.#observer.lookAtMemory();
    await this.#act(this.#judge(observations), signal);
    return nextMs;
  }

  /** One look at the disks and at what pods with a limit have written. Milliseconds until the next one. */
  async lookAtDisk(signal: AbortSignal): Promise<number> {
    const look = await this.#observer.lookAtDisk();
    const step = this.#judge(look.observations);
    if (await this.#keepLimits(signal)) return shortestLookMs;
    // once while it is near: who grows from here on is the one that fills it
    if (!this.#observer.isDiskNear(look)) this.#firstDisk = undefined;
    else this.#firstDisk ??= await this.deps.diskUsage(this.deps.pods(), signal);
    await this.#act(step, signal);
    return look.nextMs;
  }

  async #watch(signal: AbortSignal, look: () => Promise<number>): Promise<void> {
    const { clock, log } = this.deps;
    while (!signal.aborted) {
      let ms = longestLookMs;
      try {
        ms = await look();
      } catch (e) {
        if (!isAbort(e)) log.warn({ error: describeError(e) }, 'the node could not be looked at for eviction');
      }
      await clock.sleep(ms, signal).catch(() => {}); // aborted: the loop ends
    }
  }

  async #act({ active }: PressureStep, signal: AbortSignal): Promise<void> {
    const first = active.find((a) => this.#holds.mayAct(a));
    if (first !== undefined) await this.#relieve(first, signal);
  }

  #judge(observations: Observations): PressureStep {
    const { clock, pressureTransitionMs } = this.deps;
    const step = pressureStep(this.#state, this.#thresholds, observations, clock.monotonic(), pressureTransitionMs);
    this.#take(step);
    return step;
  }

  #take({ state, pressures }: PressureStep): void {
    this.#state = state;
    const text = JSON.stringify([Object.keys(state.met), pressures]);
    if (text !== this.#stored) {
      this.#stored = text;
      this.deps.store.put(storeKey, state).catch((e) => {
        this.deps.log.warn({ error: describeError(e) }, 'the pressures of the node cannot be stored');
      });
    }
    if (pressures.join() === this.#pressures.join()) return;
    this.#pressures = pressures;
    this.deps.changed(pressures);
  }

  /** Gives back what can be given back, and else ends one pod. */
  async #relieve(first: ActiveThreshold, signal: AbortSignal): Promise<void> {
    const { signal: name } = first.threshold;
    this.#say(reclaimMessage(resourceOf(name)));
    const now = isDiskSignal(name) ? await this.#reclaimer.relieve(first) : first;
    if (now === undefined) return;
    if (this.#busy) return now.threshold.kind === 'hard' ? this.#hurry() : undefined;
    const pods = this.deps.pods();
    const usage = await this.#usage(name, signal);
    const candidates = candidatesFor(name, pods, usage);
    const chosen = pickPod(candidates, now.missing, floors[resourceOf(name)]);
    const pod = pods.find((p) => p.uid === chosen?.uid);
    if (pod === undefined) {
      this.#say(`${reclaimMessage(resourceOf(name))}: no pod could give back enough of it to matter, so none is ended`);
      this.#holds.fruitless(pressureOf(name));
      return;
    }
    const { urgent } = now.observation;
    const message = lowResourceMessage({
      resource: resourceOf(name),
      threshold: binaryText(now.amount),
      available: binaryText(now.observation.available),
      ...(urgent !== undefined && { urgent }),
      offenders: offendersOf(name, pod, usage),
    });
    await this.#evict(pod.uid, message, true, now.threshold.kind === 'hard' ? immediateSeconds : undefined, pressureOf(name));
  }

  async #evict(
    uid: PodUid,
    message: string,
    disrupts: boolean,
    graceSeconds: number | undefined,
    type: PressureType | undefined,
  ): Promise<void> {
    if (this.#busy) return;
    const o: EvictOptions = { reason: 'Evicted', message, disrupts, graceSeconds, until: type };
    this.deps.log.warn({ uid, reason: message }, 'a pod is evicted');
    this.#busy = true;
    const ending = this.#end(uid, o);
    if (graceSeconds !== undefined) return ending;
    this.#patient = { uid, o };
    ending.catch((e) => this.deps.log.warn({ uid, error: describeError(e) }, 'the node could not be looked at after an eviction'));
  }

  async #end(uid: PodUid, o: EvictOptions): Promise<void> {
    const { deps } = this;
    const type = o.until;
    let stuck = false;
    try {
      if (type === 'MemoryPressure') await deps.brake?.(uid);
      await deps.evict(uid, o);
    } catch (e) {
      // its worker goes on
      stuck = true;
      deps.log.warn({ uid, error: describeError(e) }, 'an evicted pod has not ended yet');
    }
    // of one that has not ended yet: when it has. It never rejects
    if (type === 'DiskPressure' || type === undefined) await deps.removeContent(uid);
    this.#busy = false;
    this.#patient = undefined;
    if (type !== undefined) this.#holds[stuck ? 'stuck' : 'evicted'](type);
    // measured at once, and again when the hold is over
    const { observations } = type === 'DiskPressure' ? await this.#observer.lookAtDisk() : this.#observer.lookAtMemory();
    this.#judge(observations);
  }

  /** A hard threshold is met: who was let end by its own grace ends now. */
  async #hurry(): Promise<void> {
    const { log, evict } = this.deps;
    const patient = this.#patient;
    if (patient === undefined) return;
    this.#patient = undefined;
    log.warn({ uid: patient.uid }, 'a pod that is evicted gets no more time');
    await evict(patient.uid, { ...patient.o, graceSeconds: immediateSeconds }).catch((e) => {
      log.warn({ uid: patient.uid, error: describeError(e) }, 'an evicted pod has not ended yet');
    });
  }

  async #usage(name: EvictionThreshold['signal'], signal: AbortSignal): Promise<UsageNow> {
    const { deps } = this;
    const pods = deps.pods();
    const separateImageDisk = this.#observer.hasSeparateImageDisk();
    if (!isDiskSignal(name)) return { usage: await deps.usage(pods.map((p) => p.uid)), separateImageDisk };
    const disk = await deps.diskUsage(pods, signal);
    return { usage: new Map(), disk, ...(this.#firstDisk && { firstDisk: this.#firstDisk }), separateImageDisk };
  }

  /** Pods that broke a limit of their own on local storage go. True: one did. */
  async #keepLimits(signal: AbortSignal): Promise<boolean> {
    const { deps } = this;
    if (deps.clock.monotonic() < this.#limitsAt) return false;
    this.#limitsAt = after(deps.clock.monotonic(), limitsMs);
    const limited = deps.pods().filter((p) => hasLocalLimit(p.pod));
    if (limited.length === 0) return false;
    const usage = await deps.diskUsage(limited, signal);
    let evicted = false;
    for (const { uid, pod } of limited) {
      const used = usage.get(uid);
      const message = used && brokenLimit(pod, used);
      if (message === undefined) continue;
      await this.#evict(uid, message, false, immediateSeconds, undefined);
      evicted = true;
    }
    return evicted;
  }

  #say(message: string): void {
    const now = this.deps.clock.monotonic();
    const last = this.#said.get(message);
    if (last !== undefined && now - last < sayAgainMs) return;
    this.#said.set(message, now);
    this.deps.event('Warning', 'EvictionThresholdMet', message);
  }
}
