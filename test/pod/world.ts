/**
 * The smallest agent around PodWorkers: the real PLEG and cache, a fake runtime, and a sync that runs one sandbox with one container
 * `app`. Virtual time.
 */
import type { DesiredPod } from '../../src/api/desired.ts';
import type { PodUid } from '../../src/api/objects.ts';
import { PodCache } from '../../src/container/cache.ts';
import { labels, type RuntimePod, type RuntimePodStatus } from '../../src/container/words.ts';
import { Pleg } from '../../src/pleg/pleg.ts';
import { PodManager } from '../../src/pod/manager.ts';
import { type KillOptions, PodWorkers, type PodWorkersDeps, type SyncOutcome } from '../../src/pod/workers.ts';
import { silentLog } from '../../src/world/log.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { FakeRuntime } from '../fakes/fakeRuntime.ts';
import { containerConfig, sandboxConfig } from '../fakes/runtimeConfigs.ts';

const ours = { [labels.managed]: 'node1' };

export class World {
  readonly clock = new FakeClock();
  readonly runtime = new FakeRuntime({ clock: this.clock, latencyMs: 5 });
  readonly pods = new PodManager();
  readonly cache = new PodCache({ clock: this.clock, onWait: (uid) => this.pleg.look(uid) });
  readonly pleg: Pleg;
  readonly workers: PodWorkers;
  /** What was done, in order: `sync u1`, `kill u1 30`, `terminated u1`, `orphan u1`, `gone u1`. */
  readonly log: string[] = [];
  readonly stop = new AbortController();
  readonly start = this.clock.monotonic();
  #connected = false;

  constructor(o: Partial<PodWorkersDeps> = {}) {
    const { clock, runtime, cache } = this;
    this.pleg = new Pleg({
      clock,
      log: silentLog,
      runtime,
      cache,
      mine: (l) => l[labels.managed] === 'node1',
      emit: ({ uid, type }) => {
        const pod = this.pods.get(uid);
        if (pod !== undefined && type !== 'ContainerRemoved') this.workers.updatePod({ type: 'sync', pod });
      },
      inspectTimeoutMs: 10_000,
    });
    this.workers = new PodWorkers({
      clock,
      log: silentLog,
      cache,
      syncPod: (pod, status) => this.syncPod(pod, status),
      syncTerminatingPod: (pod, status, kill, signal) => this.kill(pod, status, kill, signal),
      syncTerminatingRuntimePod: async (pod) => {
        this.log.push(`orphan ${pod.uid}`);
        await this.stopAll(pod, 10);
      },
      syncTerminatedPod: async (pod) => {
        this.log.push(`terminated ${pod.uid}`);
      },
      effectivePod: (uid) => this.pods.get(uid),
      onFinished: (uid) => this.log.push(`gone ${uid}`),
      random: () => 0,
      syncFrequencyMs: () => 60_000,
      predecessors: (pod) =>
        this.pleg
          .pods()
          .filter(
            (p) =>
              p.uid !== pod.uid &&
              p.name === pod.name &&
              p.namespace === pod.namespace &&
              (p.sandboxes.some((s) => s.state === 'ready') || p.containers.some((c) => c.state === 'running')),
          ),
      ...o,
    });
  }

  /** Connects the event stream and PLEG. */
  async run(): Promise<void> {
    if (this.#connected) return;
    this.#connected = true;
    this.runtime
      .events(
        (e) => this.pleg.onRuntimeEvent(e),
        () => this.pleg.setEventsHealthy(true),
        this.stop.signal,
      )
      .then(
        () => {},
        () => this.pleg.setEventsHealthy(false),
      );
    this.pleg.run(this.stop.signal).catch((e) => {
      throw e;
    });
    await this.clock.advance(20);
  }

  async end(): Promise<void> {
    this.stop.abort();
    const stopped = this.workers.stop();
    // a call that hangs ends by its own deadline
    await this.clock.advance(200_000);
    await stopped;
  }

  add(pod: DesiredPod): void {
    this.pods.set(pod);
    this.workers.updatePod({ type: 'create', pod });
  }

  remove(pod: DesiredPod): void {
    this.pods.remove(pod.uid);
    this.workers.updatePod({ type: 'kill', pod });
  }

  /** ms since the world began. */
  get at(): number {
    return Math.round(this.clock.monotonic() - this.start);
  }

  took(): string[] {
    return this.log.splice(0);
  }

  async syncPod(pod: DesiredPod, status: RuntimePodStatus): Promise<SyncOutcome> {
    this.log.push(`sync ${pod.uid}`);
    const { runtime } = this;
    let sandbox = status.sandboxes.find((s) => s.state === 'ready')?.id;
    if (status.containers.some((c) => c.state === 'running') && sandbox !== undefined) return { terminal: false, acted: false };
    const config = sandboxConfig(pod.name, { uid: pod.uid, labels: ours, attempt: status.sandboxes.length });
    sandbox ??= await runtime.runSandbox(config, '');
    const attempt = status.containers.length;
    const container = await runtime.createContainer(sandbox, containerConfig(config, 'app', { labels: ours, attempt }), config);
    await runtime.startContainer(container);
    return { terminal: false, acted: true };
  }

  /** As podsync does it: a shorter grace lets the step end early, the call goes on. */
  async kill(pod: DesiredPod, status: RuntimePodStatus, kill: KillOptions, signal: AbortSignal): Promise<SyncOutcome> {
    this.log.push(`kill ${pod.uid} ${kill.graceSeconds ?? 'own'}`);
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
    const grace = kill.graceSeconds ?? pod.pod.spec.terminationGracePeriodSeconds ?? 30;
    await Promise.race([this.stopAll(status, grace), aborted]);
    const now = await this.cache.getNewerThan(pod.uid, this.cache.stamp(), signal);
    if (now.containers.some((c) => c.state === 'running')) throw new Error('something still runs');
    return { terminal: false, acted: true };
  }

  async stopAll(pod: RuntimePod | RuntimePodStatus, graceSeconds: number): Promise<void> {
    for (const c of pod.containers) if (c.state === 'running') await this.runtime.stopContainer(c.id, graceSeconds);
    for (const s of pod.sandboxes) await this.runtime.stopSandbox(s.id);
  }

  /** Makes a pod in the runtime that no worker made. */
  async leftBehind(name: string, uid: string): Promise<void> {
    const config = sandboxConfig(name, { uid: uid as PodUid, labels: ours });
    const making = (async () => {
      const sandbox = await this.runtime.runSandbox(config, '');
      const container = await this.runtime.createContainer(sandbox, containerConfig(config, 'app', { labels: ours }), config);
      await this.runtime.startContainer(container);
    })();
    await this.clock.advance(100);
    await making;
  }
}
