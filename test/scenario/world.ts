/**
 * The whole agent but its doors, in virtual time: the real wiring around a fake runtime, a folder in memory, stores that survive an agent, and a
 * broker that keeps what was told. `restart()` is kill -9 and a new start: nothing of the old agent says goodbye.
 */
import type { PodUid } from '../../src/api/objects.ts';
import type { SyncStatus } from '../../src/api/payloads.ts';
import type { ToldPod, V1Event } from '../../src/api/status.ts';
import { Kubelet } from '../../src/kubelet.ts';
import type { LogFolders } from '../../src/kuberuntime/logs.ts';
import type { Clock } from '../../src/world/clock.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore, type Store } from '../../src/world/store.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { FakeFolder } from '../fakes/fakeFolder.ts';
import { FakeRuntime } from '../fakes/fakeRuntime.ts';

const prefix = 'podsched/v1/nodes/pi/';

/** A dead agent's hands: nothing it still tries reaches anybody. */
const cut = <T extends object>(target: T, alive: () => boolean): T =>
  new Proxy(target, {
    get(t, name) {
      const value: unknown = Reflect.get(t, name);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => (alive() ? value.apply(t, args) : new Promise(() => {}));
    },
  });

export interface WorldOptions {
  readonly latencyMs?: number;
  readonly random?: () => number;
}

export class World {
  readonly clock = new FakeClock();
  readonly runtime: FakeRuntime;
  readonly folder: FakeFolder;
  readonly stateStore = new MemoryStore();
  runStore = new MemoryStore();
  /** The broker's retained messages. */
  readonly retained = new Map<string, string>();
  readonly events: V1Event[] = [];
  readonly onTold: ((topic: string, payload: string | undefined) => void)[] = [];
  bootId = 'boot-1';
  #boot = 1;
  #seq = 0;
  #uids = 0;
  #alive = { now: false };
  kubelet!: Kubelet;

  constructor(private readonly o: WorldOptions = {}) {
    this.runtime = new FakeRuntime({ clock: this.clock, latencyMs: o.latencyMs ?? 5 });
    this.folder = new FakeFolder(this.clock);
    for (const tag of ['1', '2', '3']) this.runtime.images.set(`localhost/busybox:${tag}`, { state: 'present' });
  }

  /** A new agent on what the old one left. */
  async start(): Promise<void> {
    const alive = { now: true };
    this.#alive = alive;
    const isAlive = () => alive.now;
    const told = new Set<string>();
    const runtime = cut(this.runtime, isAlive);
    const clock: Clock = {
      now: () => this.clock.now(),
      monotonic: () => this.clock.monotonic(),
      sleep: (ms, signal) => this.clock.sleep(ms, signal).then(() => (alive.now ? undefined : new Promise<void>(() => {}))),
    };
    this.kubelet = new Kubelet(
      {
        clock,
        log: silentLog,
        runtime,
        images: runtime,
        folder: this.folder,
        stateStore: cut<Store>(this.stateStore, isAlive),
        runStore: cut<Store>(this.runStore, isAlive),
        logFolders: noLogs,
        broker: {
          tell: (topic, payload) => {
            if (!alive.now) return;
            for (const f of this.onTold) f(topic, payload);
            if (payload === undefined) this.retained.delete(topic);
            else this.retained.set(topic, payload);
            told.add(topic);
          },
          send: (_topic, payload) => {
            if (alive.now) this.events.push(JSON.parse(payload) as V1Event);
          },
          // what the session does then: what this agent has not told is a ghost
          setReady: () => {
            for (const topic of [...this.retained.keys()]) if (!told.has(topic)) this.retained.delete(topic);
          },
          maxBytes: () => 60_000,
        },
        random: this.o.random ?? (() => 0.5),
        newUid: () => `uid-${++this.#uids}` as PodUid,
        bootId: this.bootId,
        boot: () => this.#boot,
        seq: () => ++this.#seq,
        hostDns: () => ({ servers: ['10.0.0.1'], searches: [], options: [] }),
        hostIps: () => ['192.0.2.7'],
        nodeMemoryBytes: 2 ** 30,
        thermalThrottlePaths: [],
        conditionsChanged: () => {},
      },
      {
        nodeName: 'pi',
        formerNames: [],
        prefix: 'podsched/v1',
        podLogsDir: '/var/log/pods',
        cgroupDriver: 'auto',
        syncFrequencyMs: () => 60_000,
        maxContainerRestartMs: 300_000,
        serializeImagePulls: true,
        strict: () => false,
      },
    );
    await this.kubelet.start();
    await this.clock.advance(0);
  }

  /** kill -9: nothing is flushed, calls under way are lost. */
  kill(): void {
    this.#alive.now = false;
    this.runtime.dropClients();
  }

  async restart(): Promise<void> {
    this.kill();
    await this.start();
  }

  /** Power off and on: a new boot, runDir empty, every process gone. */
  async reboot(): Promise<void> {
    this.kill();
    this.runtime.reboot();
    this.runStore = new MemoryStore();
    this.bootId = `boot-${++this.#boot}`;
    await this.start();
  }

  advance(seconds: number): Promise<void> {
    return this.clock.advance(seconds * 1000);
  }

  pod(name: string): ToldPod | undefined {
    const text = this.retained.get(`${prefix}pods/default/${name}`);
    return text === undefined ? undefined : (JSON.parse(text) as ToldPod);
  }

  sync(name: string): SyncStatus | undefined {
    const text = this.retained.get(`${prefix}sync/default/${name}`);
    return text === undefined ? undefined : (JSON.parse(text) as SyncStatus);
  }

  file(name: string): unknown {
    const text = this.retained.get(`${prefix}sync/_files/${name}`);
    return text === undefined ? undefined : JSON.parse(text);
  }

  toldPods(): ToldPod[] {
    return [...this.retained].filter(([t]) => t.startsWith(`${prefix}pods/`)).map(([, p]) => JSON.parse(p) as ToldPod);
  }
}

const noLogs: LogFolders = {
  ensure: async () => {},
  nextAttempt: async () => 0,
  removeLog: async () => {},
  removePod: async () => {},
  list: async () => [],
};

/** A manifest in YAML; `spec` as lines below `spec:`. */
export function manifest(
  name: string,
  spec: { containers?: readonly string[]; lines?: readonly string[]; labels?: Readonly<Record<string, string>> } = {},
): string {
  const containers = spec.containers ?? ['{name: app, image: localhost/busybox:1, command: [sleep, "100"]}'];
  return [
    'apiVersion: v1',
    'kind: Pod',
    'metadata:',
    `  name: ${name}`,
    ...(spec.labels ? [`  labels: ${JSON.stringify(spec.labels)}`] : []),
    'spec:',
    ...(spec.lines ?? []).map((l) => `  ${l}`),
    '  containers:',
    ...containers.map((c) => `  - ${c}`),
    '',
  ].join('\n');
}
