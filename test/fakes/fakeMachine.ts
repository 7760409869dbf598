/**
 * The machine under a FakeRuntime and the hand of the test on it: records, processes on a Clock, events, and everything that can go wrong.
 */
import {
  type ContainerConfig,
  type ContentStore,
  type ImageFilesystem,
  type ImageInfo,
  type ImageService,
  type Ingest,
  type Runtime,
  type RuntimeCondition,
  RuntimeError,
  type RuntimeEvent,
  type RuntimeHandler,
  type RuntimeVersion,
  type SandboxConfig,
} from '../../src/container/runtime.ts';
import type { ContainerStats } from '../../src/container/stats.ts';
import type { ContainerId, SandboxId } from '../../src/container/words.ts';
import type { Clock } from '../../src/world/clock.ts';
import { Faults } from './faults.ts';
import { type FakeContainer, type FakeImage, type FakeSandbox, imageId, type ProcessBehaviour } from './runtimeRecords.ts';

export type FakeMethod = keyof Runtime | keyof ImageService | keyof ContentStore;

interface EventReader {
  readonly onEvent: (e: RuntimeEvent) => void;
  readonly fail: (e: Error) => void;
}

export class FakeMachine {
  readonly sandboxes = new Map<SandboxId, FakeSandbox>();
  readonly containers = new Map<ContainerId, FakeContainer>();
  readonly images = new Map<string, FakeImage>([['localhost/busybox:1', { state: 'present' }]]);
  /** What must never happen and did, in sentences. */
  readonly violations: string[] = [];
  conditions: RuntimeCondition[] = ['RuntimeReady', 'NetworkReady'].map((type) => ({ type, status: true, reason: '', message: '' }));
  driver: 'cgroupfs' | 'systemd' | undefined = 'cgroupfs';
  runtimeVersion: RuntimeVersion = { runtimeName: 'containerd', runtimeVersion: '1.7.24' };
  runtimeHandlers: readonly RuntimeHandler[] = [];
  /** What the runtime says its sandboxes are made of. */
  pauseImage: string | undefined = 'registry.k8s.io/pause:3.9';
  /** What running containers use; of one that is not here the runtime has no reading. */
  readonly usage = new Map<ContainerId, Pick<ContainerStats, 'cpu' | 'memory' | 'swap' | 'writableLayer'>>();
  filesystems: readonly ImageFilesystem[] = [{ mountpoint: '/', usedBytes: 0 }];
  /** What pulls are writing just now. */
  writing: readonly Ingest[] = [];
  eventsImplemented = true;
  /** Device nodes of the host that are not there: no container is made with them. */
  readonly absentDevices = new Set<string>();
  protected eventReaders = new Set<EventReader>();
  #loseEvents = 0;
  #ids = 0;
  protected behaviourOf: (name: string, config: ContainerConfig, pod: SandboxConfig) => ProcessBehaviour | undefined = () => undefined;
  protected readonly clock: Clock;
  protected readonly faults: Faults<FakeMethod>;

  constructor(o: { readonly clock: Clock; readonly latencyMs?: number | ((method: FakeMethod) => number) }) {
    const { clock, latencyMs } = o;
    this.clock = clock;
    this.faults = new Faults(clock, typeof latencyMs === 'function' ? latencyMs : () => latencyMs ?? 0);
  }

  get calls(): Faults<FakeMethod>['calls'] {
    return this.faults.calls;
  }

  /** Names of the calls so far, in order; lists and inspections left out. */
  get deeds(): FakeMethod[] {
    return this.calls.map((c) => c.method).filter((m) => /^(run|stop|remove|create|start|pull)/.test(m));
  }

  /** A call that hangs ends with `deadlineExceeded` after this (stopContainer: plus its grace). Default 2 min. */
  set requestTimeoutMs(ms: number) {
    this.faults.requestTimeoutMs = ms;
  }

  /** How containers started from now on behave, by container name, config and pod. */
  onStart(f: (name: string, config: ContainerConfig, pod: SandboxConfig) => ProcessBehaviour | undefined): void {
    this.behaviourOf = f;
  }

  /** The next `times` calls of `method` reject; `after`: the deed is done, only its answer is lost. */
  failNext(method: FakeMethod, error: Error, times = 1, when: 'before' | 'after' = 'before'): void {
    this.faults.failNext(method, error, times, when);
  }

  /** Calls of `method` (whose arguments match) stay unanswered until the returned release, or until the request times out. */
  hang(method: FakeMethod, match: (args: readonly unknown[]) => boolean = () => true): () => void {
    return this.faults.hang(method, match);
  }

  /** The process ends by itself. */
  exit(id: ContainerId, exitCode: number, o: { readonly oom?: boolean } = {}): void {
    const c = this.container(id);
    if (o.oom) {
      c.reason = 'OOMKilled';
      this.emit('oom', id);
    }
    this.end(c, exitCode);
  }

  /** The sandbox's own process dies. The containers live on, as they do in containerd, unless they share its process namespace. */
  killSandbox(id: SandboxId): void {
    const s = this.sandbox(id);
    if (s.state === 'notready') return;
    s.state = 'notready';
    for (const c of this.containersIn(id)) if (c.config.namespaces.pid === 'POD') this.end(c, 137);
    this.emit('exit', id);
  }

  /** The machine went down and up: every process is gone, records stay, nobody hears events of it. */
  reboot(): void {
    for (const s of this.sandboxes.values()) s.state = 'notready';
    for (const c of this.containers.values()) {
      if (c.state !== 'running') continue;
      c.reason = 'Unknown';
      this.end(c, 255, false);
    }
    this.breakEvents();
  }

  /** Whoever called and waits is gone: its calls end `unavailable`, and a stop in its grace is not carried on (as in containerd). */
  dropClients(): void {
    this.faults.dropClients();
    this.breakEvents();
  }

  /** The runtime's daemon is away (every call is `unavailable`); containers live on. */
  setDown(down: boolean): void {
    this.faults.away = down ? new RuntimeError('unavailable', 'connect ENOENT /run/containerd/containerd.sock') : undefined;
    if (down) this.dropClients();
  }

  /** The next `n` events reach nobody. */
  loseEvents(n: number): void {
    this.#loseEvents += n;
  }

  /** An event out of nothing: only something to look at. */
  tellEvent(topic: RuntimeEvent['topic'], containerId: string): void {
    this.emit(topic, containerId);
  }

  breakEvents(): void {
    const broken = [...this.eventReaders];
    this.eventReaders.clear();
    for (const l of broken) l.fail(new RuntimeError('unavailable', 'event stream broken'));
  }

  /** How many read the event stream now. */
  get listeners(): number {
    return this.eventReaders.size;
  }

  /** Ends every timer (for a test on the real clock). */
  close(): void {
    this.faults.dropClients();
    for (const c of this.containers.values()) c.ended.abort();
    this.breakEvents();
  }

  /** Newest container (highest attempt) of that name in a pod of that name, in any state. */
  find(podName: string, containerName: string): FakeContainer | undefined {
    let found: FakeContainer | undefined;
    for (const c of this.containers.values()) {
      if (this.sandboxes.get(c.sandboxId)?.config.name !== podName || c.config.name !== containerName) continue;
      if (found === undefined || c.config.attempt >= found.config.attempt) found = c;
    }
    return found;
  }

  /** `pod/container` of everything that runs, sorted. */
  running(): string[] {
    const names: string[] = [];
    for (const c of this.containers.values()) {
      if (c.state === 'running') names.push(`${this.sandboxes.get(c.sandboxId)?.config.name}/${c.config.name}`);
    }
    return names.sort();
  }

  protected later(c: FakeContainer, ms: number, then: () => void): void {
    this.clock.sleep(ms, c.ended.signal).then(then, () => undefined); // it ended before: nothing left to do
  }

  protected newId(): string {
    this.#ids += 1;
    return this.#ids.toString(16).padStart(8, '0').repeat(8);
  }

  protected sandbox(id: SandboxId): FakeSandbox {
    const s = this.sandboxes.get(id);
    if (s === undefined) throw new RuntimeError('notFound', `an error occurred when try to find sandbox: not found`);
    return s;
  }

  protected container(id: ContainerId): FakeContainer {
    const c = this.containers.get(id);
    if (c === undefined) throw new RuntimeError('notFound', `an error occurred when try to find container "${id}": not found`);
    return c;
  }

  protected containersIn(id: SandboxId): FakeContainer[] {
    return [...this.containers.values()].filter((c) => c.sandboxId === id);
  }

  protected presentImage(nameOrId: string): ImageInfo | undefined {
    for (const [name, image] of this.images) {
      const id = image.id ?? imageId(name);
      if (image.state !== 'present' || (name !== nameOrId && id !== nameOrId)) continue;
      return this.imageInfo(name);
    }
    return undefined;
  }

  protected imageInfo(name: string): ImageInfo {
    const { id = imageId(name), username = '', uid, sizeBytes, platform, pinned = false } = this.images.get(name) ?? {};
    const optional = { ...(uid !== undefined && { uid }), ...(sizeBytes !== undefined && { sizeBytes }), ...(platform && { platform }) };
    return { id, tags: [name], digests: [], pinned, username, ...optional };
  }

  protected end(c: FakeContainer, exitCode: number, tell = true): void {
    if (c.state === 'exited') return;
    c.state = 'exited';
    c.exitCode = exitCode;
    c.finishedAt = this.clock.now();
    c.ended.abort();
    if (tell) this.emit('exit', c.id);
  }

  protected drop(c: FakeContainer): void {
    if (c.state === 'running') this.end(c, 137);
    this.containers.delete(c.id);
    this.emit('delete', c.id);
  }

  protected stopAll(id: SandboxId): void {
    const s = this.sandboxes.get(id);
    if (s === undefined) return;
    for (const c of this.containersIn(id)) if (c.state === 'running') this.end(c, 137);
    if (s.state === 'notready') return;
    s.state = 'notready';
    this.emit('exit', id);
  }

  protected emit(topic: RuntimeEvent['topic'], containerId: string): void {
    if (this.#loseEvents > 0) {
      this.#loseEvents -= 1;
      return;
    }
    // never within the call that caused it, as over a wire
    queueMicrotask(() => {
      for (const l of this.eventReaders) l.onEvent({ containerId, topic });
    });
  }
}
