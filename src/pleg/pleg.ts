/**
 * Pleg: the records of what the runtime last showed of each pod, and the one way news enter the house.
 *
 * Order, which carries correctness: inspect the pod, *then* the cache, *then* the record, *then* the event. When inspecting fails the
 * record stays, so the same difference is found again. Nothing is remembered to be done later, because nothing can be forgotten.
 *
 * Each pod has a line of its own: looks at one pod never overlap, looks at different pods never wait for each other, and every look ends
 * by itself (`inspectTimeoutMs`). Runtime events say only when to look, never what happened. No fixed tick: all pods are listed every
 * 60 s while the event stream is healthy and every 1 s while it is not.
 *
 * Never decides anything about pods and never changes the runtime. Mirrors kubelet v1.32 pleg/generic.go, except that created
 * containers are not told (nor does the kubelet), but one whose state the runtime has lost is.
 */

import type { PodUid } from '../api/objects.ts';
import { Deadlines } from '../async/deadlines.ts';
import type { PodCache } from '../container/cache.ts';
import type { Runtime, RuntimeEvent } from '../container/runtime.ts';
import type { ContainerId, ContainerStatus, RuntimePod } from '../container/words.ts';
import { after, type Clock, type Monotonic } from '../world/clock.ts';
import type { Log } from '../world/log.ts';
import { computeEvents, type PodLifecycleEvent } from './events.ts';
import { groupPods } from './group.ts';
import { KnownIds } from './ids.ts';
import { type EndedView, inspectPod, isKnown, isOomUntold, within } from './inspect.ts';
import { OomKills } from './oomKills.ts';
import { StreamHealth } from './stream.ts';

export interface PlegDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly runtime: Pick<Runtime, 'listSandboxes' | 'listContainers' | 'sandboxStatus' | 'containerStatus'>;
  readonly cache: PodCache;
  /** These labels of a sandbox or container say that it is ours. */
  readonly mine: (labels: Readonly<Record<string, string>>) => boolean;
  readonly emit: (e: PodLifecycleEvent) => void;
  readonly inspectTimeoutMs: number;
  /** What an ended container said at its end; never rejects. Absent: nothing. */
  readonly lastWords?: (status: ContainerStatus) => Promise<string>;
  /** The first list of all pods is in. */
  readonly firstListed?: () => void;
  /** The runtime could not be listed: whoever judges it may look again. */
  readonly listFailed?: () => void;
  /** These containers of a pod run now, and no others. */
  readonly running?: (uid: PodUid, ids: readonly ContainerId[]) => void;
}

/** One pod's turn: at most one look at a time, one newest list waiting. */
interface Line {
  /** Somebody wants a list newer than any asked for. */
  again: boolean;
  /** The newest list not yet worked on. */
  offered: { readonly pod: RuntimePod | undefined; readonly at: Monotonic } | undefined;
  /** The newest list that was offered at all. */
  newest: Monotonic;
  /** The last inspection failed: the next list is inspected whatever it shows. */
  failed: boolean;
  working: boolean;
  /** Ends with the work under way. */
  busy: Promise<void> | undefined;
}

type Due = 'all' | 'unknown' | PodUid;

const healthyPeriodMs = 60_000;
const unhealthyPeriodMs = 1_000;
const retryMs = 1_000;
/** An id nobody knows is mostly a container in the making: its maker tells within this time. */
const unknownMs = 50;

export class Pleg {
  #records = new Map<PodUid, RuntimePod>();
  #seen = new Map<PodUid, RuntimePod>();
  #lines = new Map<PodUid, Line>();
  #ids = new KnownIds();
  #oomKills = new OomKills();
  readonly #ended: EndedView = {
    lastWords: (status) => this.deps.lastWords?.(status) ?? Promise.resolve(''),
    oomKilled: (id) => this.#oomKills.near(id, this.exitSeenAt(id)),
  };
  #listed = false;
  #running = false;
  #listFails = false;
  #listing: Promise<void> | undefined;
  #following: Promise<void> | undefined;
  #due: Deadlines<Due>;
  #stream: StreamHealth;

  constructor(private readonly deps: PlegDeps) {
    this.#due = new Deadlines(deps.clock, (key) => this.#onDue(key));
    this.#stream = new StreamHealth(deps.clock, () => this.#planAll());
  }

  /** The first list of all pods is in. */
  listed(): boolean {
    return this.#listed;
  }

  /** What the newest lists showed of our pods, inspected or not: who is there, for those who must not overlook anybody. */
  pods(): readonly RuntimePod[] {
    return [...this.#seen.values()];
  }

  /** When this agent first saw the container exited, on the monotonic clock; now, when it has not. */
  exitSeenAt(id: ContainerId): Monotonic {
    return this.#ids.exitSeenAt(id) ?? this.deps.clock.monotonic();
  }

  /** Lists all pods and waits until each changed one was inspected (or failed). Rejects when the runtime cannot be listed. */
  async relist(): Promise<void> {
    await this.#listAll();
    await Promise.all([...this.#lines.values()].map((line) => line.busy));
  }

  /** Looks at one pod soon; asked again while a look is under way, one more look follows it. */
  look(uid: PodUid): void {
    const line = this.#line(uid);
    line.again = true;
    this.#work(uid, line);
  }

  /** The runtime saw something happen: look at the pod it belongs to. */
  onRuntimeEvent(e: RuntimeEvent): void {
    this.#stream.hear(e.containerId);
    if (e.topic === 'oom') this.#oomKills.hear(e.containerId, this.deps.clock.monotonic());
    const uid = this.#ids.owner(e.containerId);
    if (uid !== undefined) this.look(uid);
    else if (this.#ids.wonder(e.containerId)) this.#due.setEarlier('unknown', after(this.deps.clock.monotonic(), unknownMs));
  }

  /** The kernel counted a kill for want of memory in this container. */
  oomKilled(id: ContainerId, uid: PodUid): void {
    this.#oomKills.hear(id, this.deps.clock.monotonic());
    // an end that was told already may have its reason now
    this.look(uid);
  }

  /** The event stream flows from now on, or has broken. */
  setEventsHealthy(up: boolean): void {
    this.#stream.setUp(up);
    // what happened while nobody listened is in the list only
    if (up && this.#running) this.#due.setEarlier('all', this.deps.clock.monotonic());
  }

  /** We have just acted on this container or sandbox: an event of it must come. `uid` makes it known before any list shows it. */
  expectEvent(containerId: string, uid?: PodUid): void {
    this.#stream.expect(containerId);
    if (uid !== undefined && this.#ids.claim(containerId, uid)) this.look(uid);
  }

  /** Relists for ever; ends when aborted. */
  async run(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    this.#running = true;
    this.#due.setEarlier('all', this.deps.clock.monotonic());
    await new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    this.#running = false;
    this.#due.stop();
    this.#stream.stop();
  }

  #onDue(key: Due): void {
    if (key === 'unknown' && !this.#ids.hasUnknown) return;
    if (key !== 'all' && key !== 'unknown') {
      this.look(key);
      return;
    }
    // #listAll has logged why
    this.#listAll().then(
      () => this.#planAll(),
      () => this.#planAll(),
    );
  }

  #planAll(): void {
    if (!this.#running) return;
    const period = this.#stream.healthy && !this.#listFails ? healthyPeriodMs : unhealthyPeriodMs;
    this.#due.set('all', after(this.deps.clock.monotonic(), period));
  }

  /** One list of all at a time; who asks during one gets the next. */
  #listAll(): Promise<void> {
    if (this.#listing !== undefined) {
      this.#following ??= this.#listing
        .catch(() => {}) // reported to those who asked for it
        .then(() => {
          this.#following = undefined;
          return this.#listAll();
        });
      return this.#following;
    }
    this.#listing = this.#listAllOnce().finally(() => {
      this.#listing = undefined;
    });
    return this.#listing;
  }

  async #listAllOnce(): Promise<void> {
    const at = this.deps.cache.stamp();
    const { pods, foreign } = await this.#list(undefined);
    this.#ids.seeAll(foreign);
    for (const uid of new Set([...pods.keys(), ...this.#records.keys(), ...this.#lines.keys()])) {
      const line = this.#line(uid);
      this.#offer(uid, line, pods.get(uid), at);
      this.#work(uid, line);
    }
    const first = !this.#listed;
    this.#listed = true;
    this.deps.cache.setGlobal(at);
    if (first) this.deps.firstListed?.();
  }

  async #list(uid: PodUid | undefined): Promise<ReturnType<typeof groupPods>> {
    const { clock, runtime, log } = this.deps;
    try {
      const [sandboxes, containers] = await within(
        clock,
        this.deps.inspectTimeoutMs,
        'the list of pods',
        Promise.all([runtime.listSandboxes(uid), runtime.listContainers(uid)]),
      );
      if (this.#listFails) log.info({}, 'the runtime can be listed again');
      this.#listFails = false;
      return groupPods(sandboxes, containers, this.deps.mine);
    } catch (error) {
      if (!this.#listFails) log.warn({ error }, 'the runtime cannot be listed');
      this.#listFails = true;
      this.deps.listFailed?.();
      // a list of all that succeeds also answers those who wait for one pod
      if (this.#running) this.#due.setEarlier('all', after(clock.monotonic(), retryMs));
      throw error;
    }
  }

  #line(uid: PodUid): Line {
    const known = this.#lines.get(uid);
    if (known !== undefined) return known;
    const newest = Number.NEGATIVE_INFINITY as Monotonic;
    const line: Line = { again: false, offered: undefined, newest, failed: false, working: false, busy: undefined };
    this.#lines.set(uid, line);
    return line;
  }

  /** The newest list counts, whichever answer came first. */
  #offer(uid: PodUid, line: Line, pod: RuntimePod | undefined, at: Monotonic): void {
    if (at <= line.newest) return;
    line.newest = at;
    line.offered = { pod, at };
    if (pod === undefined) {
      this.#seen.delete(uid);
      return;
    }
    this.#seen.set(uid, pod);
    this.deps.cache.expect(uid);
    this.#ids.see(pod, this.deps.clock.monotonic());
  }

  #work(uid: PodUid, line: Line): void {
    // set before the first step: what that step tells may lead back here at once
    if (line.working) return;
    line.working = true;
    line.busy = this.#workLine(uid, line).finally(() => {
      line.working = false;
      line.busy = undefined;
      if (line.again || line.offered !== undefined) this.#work(uid, line);
      else if (!line.failed && !this.#records.has(uid)) this.#lines.delete(uid);
    });
  }

  async #workLine(uid: PodUid, line: Line): Promise<void> {
    while (line.again || line.offered !== undefined) {
      if (line.again) {
        line.again = false;
        const at = this.deps.cache.stamp();
        try {
          const { pods } = await this.#list(uid);
          this.#offer(uid, line, pods.get(uid), at);
        } catch {
          // reported by #list; the next list of all pods brings the news
        }
      }
      const offered = line.offered;
      line.offered = undefined;
      if (offered !== undefined) await this.#observe(uid, line, offered.pod, offered.at);
    }
  }

  async #observe(uid: PodUid, line: Line, pod: RuntimePod | undefined, at: Monotonic): Promise<void> {
    const { cache, clock, log, runtime } = this.deps;
    const before = this.#records.get(uid);
    if (pod === undefined) return this.#gone(uid, line, before, at);
    const known = cache.get(uid);
    if (!line.failed && known !== undefined && isKnown(pod, known, this.#ended) && computeEvents(before, pod).length === 0) {
      this.#records.set(uid, pod);
      cache.touch(uid, at);
      return;
    }
    // the reason of an end that was told already is news of its own
    const late = known?.containers.filter((c) => isOomUntold(c, this.#ended)) ?? [];
    let answer: Awaited<ReturnType<typeof inspectPod>>;
    try {
      answer = await within(clock, this.deps.inspectTimeoutMs, 'the inspection of a pod', inspectPod(runtime, pod, known, this.#ended));
    } catch (error) {
      if (!line.failed) log.warn({ pod: `${pod.namespace}/${pod.name}`, uid, error }, 'a pod cannot be inspected');
      line.failed = true;
      cache.set(uid, error instanceof Error ? error : new Error(String(error)), at);
      if (this.#running) this.#due.set(uid, after(clock.monotonic(), retryMs));
      return;
    }
    const { status, seen } = answer;
    if (seen.sandboxes.length + seen.containers.length === 0) {
      this.#seen.delete(uid);
      return this.#gone(uid, line, before, at);
    }
    line.failed = false;
    cache.set(uid, status, at);
    this.#move(uid, before, seen);
    for (const { id } of late) this.deps.emit({ uid, type: 'ContainerChanged', id });
  }

  #gone(uid: PodUid, line: Line, before: RuntimePod | undefined, at: Monotonic): void {
    line.failed = false;
    this.deps.cache.delete(uid, at);
    this.#move(uid, before, undefined);
    this.#ids.forgetPod(uid);
  }

  /** Record, then event: what is told is already true for whoever asks. */
  #move(uid: PodUid, before: RuntimePod | undefined, now: RuntimePod | undefined): void {
    if (now === undefined) this.#records.delete(uid);
    else this.#records.set(uid, now);
    this.deps.running?.(uid, now?.containers.filter((c) => c.state === 'running').map((c) => c.id) ?? []);
    const events = computeEvents(before, now);
    const lost = new Set(now?.containers.filter((c) => c.state === 'unknown').map((c): string => c.id));
    for (const e of events) {
      if (e.type === 'ContainerRemoved') {
        this.#ids.forget(e.id);
        this.#oomKills.forget(e.id);
      }
      if (e.type !== 'ContainerChanged' || lost.has(e.id)) this.deps.emit(e);
    }
  }
}
