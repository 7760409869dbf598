/**
 * The whole agent but its doors, in virtual time: the real wiring around a fake runtime, a folder in memory, stores that survive an agent, and a
 * broker that keeps what was told. `restart()` is kill -9 and a new start: nothing of the old agent says goodbye.
 */
import type { HostSocket } from '../../src/admission/hostPorts.ts';
import type { DeviceClasses } from '../../src/api/deviceClasses.ts';
import type { PodUid } from '../../src/api/objects.ts';
import type { FileStatus, NodeOnline, SyncStatus } from '../../src/api/payloads.ts';
import type { ToldPod, V1Event } from '../../src/api/status.ts';
import { escapeFileName } from '../../src/api/topics.ts';
import { BrokerSession } from '../../src/broker/session.ts';
import type { SessionIdentity } from '../../src/broker/words.ts';
import { Kubelet } from '../../src/kubelet.ts';
import type { KubeletWorld } from '../../src/kubeletWorld.ts';
import type { LogFolders } from '../../src/kuberuntime/logs.ts';
import { nodeLabels } from '../../src/node/labels.ts';
import type { Broker } from '../../src/world/broker.ts';
import type { Clock } from '../../src/world/clock.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore, type Store } from '../../src/world/store.ts';
import type { FakeBroker } from '../fakes/fakeBroker.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { FakeDeviceFiles } from '../fakes/fakeDeviceFiles.ts';
import { FakeFolder } from '../fakes/fakeFolder.ts';
import { FakeGateFacts } from '../fakes/fakeGateFacts.ts';
import { FakeRuntime } from '../fakes/fakeRuntime.ts';
import { buildOrders, type OrderSide, type Orders } from './orders.ts';

type Echo = (method: string, answer: unknown) => unknown;

/** A dead agent's hands: nothing it still tries reaches anybody. */
const cut = <T extends object>(target: T, alive: () => boolean, echo?: Echo): T =>
  new Proxy(target, {
    get(t, name) {
      const value: unknown = Reflect.get(t, name);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        if (!alive()) return new Promise(() => {});
        const answer: unknown = value.apply(t, args);
        return echo !== undefined && answer instanceof Promise ? answer.then((a) => echo(String(name), a)) : answer;
      };
    },
  });

export interface WorldOptions {
  readonly latencyMs?: number;
  readonly random?: () => number;
  readonly nodeName?: string;
  /** With others in one world. */
  readonly clock?: FakeClock;
  /** A real session with this broker; without it `retained` is what was told. */
  readonly broker?: FakeBroker;
  /** What is taken from that broker. */
  readonly orders?: Orders;
  /** CPUs that containers are kept to. */
  readonly cpus?: KubeletWorld['cpus'];
  /** A runtime that answers in other words than it was given. */
  readonly echo?: Echo;
  readonly logs?: LogFolders;
  readonly eviction?: KubeletWorld['eviction'];
}

export class World {
  readonly clock: FakeClock;
  readonly root: string;
  readonly runtime: FakeRuntime;
  readonly folder: FakeFolder;
  readonly deviceFiles = new FakeDeviceFiles();
  deviceClasses: DeviceClasses = {};
  readonly stateStore = new MemoryStore();
  runStore = new MemoryStore();
  /** The broker's retained messages. */
  readonly retained = new Map<string, string>();
  readonly events: V1Event[] = [];
  readonly onTold: ((topic: string, payload: string | undefined) => void)[] = [];
  readonly gates = new FakeGateFacts();
  nodeLabels: Readonly<Record<string, string>> = {};
  /** What listens on the host. */
  readonly hostSockets: HostSocket[] = [];
  /** Whose that is. */
  socketHolder: string | undefined;
  /** What containers say at their end, by name. */
  readonly lastWords = new Map<string, string>();
  /** Folders are no part of this world; what was asked of them is. */
  readonly volumes: KubeletWorld['volumes'] & { readonly asked: string[]; failure: string | undefined } = {
    asked: [],
    failure: undefined,
    async setUp({ name }) {
      this.asked.push(`set up ${name}`);
      if (this.failure !== undefined) throw new Error(this.failure);
    },
    async mounts() {
      return [];
    },
    async tearDown(uid) {
      this.asked.push(`tear down ${uid}`);
    },
    async retain() {},
    async hostsChanged(pods) {
      this.asked.push(
        `hosts ${pods
          .map((p) => p.desired.name)
          .sort()
          .join()}`,
      );
    },
  };
  bootId = 'boot-1';
  #boot = 1;
  #seq = 0;
  #uids = 0;
  #alive = { now: false };
  kubelet!: Kubelet;
  session: BrokerSession | undefined;
  #orders: OrderSide | undefined;

  constructor(private readonly o: WorldOptions = {}) {
    this.clock = o.clock ?? new FakeClock();
    this.root = `podsched/v1/nodes/${this.nodeName}`;
    this.runtime = new FakeRuntime({ clock: this.clock, latencyMs: o.latencyMs ?? 5 });
    this.folder = new FakeFolder(this.clock);
    for (const tag of ['1', '2', '3']) this.runtime.images.set(`localhost/busybox:${tag}`, { state: 'present' });
  }

  get nodeName(): string {
    return this.o.nodeName ?? 'pi';
  }

  /** A new agent on what the old one left. */
  async start(): Promise<void> {
    const alive = { now: true };
    this.#alive = alive;
    const isAlive = () => alive.now;
    const told = new Set<string>();
    const runtime = cut(this.runtime, isAlive, this.o.echo);
    const clock: Clock = {
      now: () => this.clock.now(),
      monotonic: () => this.clock.monotonic(),
      sleep: (ms, signal) => this.clock.sleep(ms, signal).then(() => (alive.now ? undefined : new Promise<void>(() => {}))),
    };
    let started = false;
    const orders =
      this.o.orders &&
      buildOrders(this.o.orders, {
        ...{ clock, nodeName: this.nodeName, bootId: this.bootId, boot: () => this.#boot, seq: () => ++this.#seq },
        stateStore: cut<Store>(this.stateStore, isAlive),
        runStore: cut<Store>(this.runStore, isAlive),
        nodeLabels: () => this.nodeLabels,
        session: () => mustHave(session),
        kubelet: () => kubelet,
        started: () => started && alive.now,
      });
    this.#orders = orders;
    const configured = () => orders?.labels() ?? this.nodeLabels;
    const session = this.#newSession(clock, isAlive, orders);
    this.session = session;
    const kubelet = new Kubelet(
      {
        clock,
        log: silentLog,
        runtime,
        images: runtime,
        folder: this.folder,
        ...(orders?.remote.source && { remote: orders.remote.source, policy: orders.gate }),
        deviceFiles: this.deviceFiles,
        stateStore: cut<Store>(this.stateStore, isAlive),
        runStore: cut<Store>(this.runStore, isAlive),
        logFolders: this.o.logs ?? noLogs,
        volumes: cut(this.volumes, isAlive),
        gates: this.gates,
        grpcCheck: async () => ({ serving: true, message: '' }),
        lastWords: async (status) => this.lastWords.get(status.name) ?? '',
        broker: {
          tell: (topic, payload, { expirySeconds }) => {
            if (!alive.now) return;
            for (const f of this.onTold) f(topic, payload);
            session?.tell(topic, payload, { qos: 1, expirySeconds });
            if (payload === undefined) this.retained.delete(topic);
            else this.retained.set(topic, payload);
            told.add(topic);
          },
          send: (topic, payload, { expirySeconds }) => {
            if (!alive.now) return;
            this.events.push(JSON.parse(payload) as V1Event);
            session?.send(topic, payload, { qos: 1, expirySeconds });
          },
          // what the session does then: what this agent has not told is a ghost
          setReady: () => {
            session?.setReady();
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
        nodeFacts: () => ({
          name: this.nodeName,
          labels: nodeLabels({ name: this.nodeName, os: 'linux', arch: 'arm64', configured: configured() }),
          os: 'linux',
          allocatable: { cpuMilli: 4000, memoryBytes: 2 ** 30, pods: 110 },
        }),
        hostSockets: () => this.hostSockets,
        socketHolder: () => this.socketHolder,
        diskUse: async () => ({ capacityBytes: 100, availableBytes: 90 }),
        conditionsChanged: () => {},
        ...(this.o.cpus && { cpus: this.o.cpus }),
        ...(this.o.eviction && { eviction: this.o.eviction }),
      },
      {
        nodeName: this.nodeName,
        deviceClasses: () => this.deviceClasses,
        formerNames: [],
        prefix: 'podsched/v1',
        podLogsDir: '/var/log/pods',
        cgroupDriver: 'auto',
        syncFrequencyMs: () => 60_000,
        maxContainerRestartMs: 300_000,
        serializeImagePulls: true,
        imageGc: () => ({ highPercent: 85, lowPercent: 80, minimumAgeMs: 120_000 }),
        strict: () => false,
        nodeValues: () => ({ name: this.nodeName, arch: 'arm64', labels: configured() }),
      },
    );
    this.kubelet = kubelet;
    orders?.remote.start();
    session?.run(new AbortController().signal).catch(() => {}); // a dead agent's session never ends
    await kubelet.start();
    started = true;
    await this.clock.advance(0);
  }

  /** SIGHUP: settings and keys of `orders` are others now. */
  async reload(): Promise<void> {
    const { kubelet } = this;
    await Promise.all([kubelet.config.policyChanged(), this.advance(0)]);
    this.#orders?.settingsChanged();
  }

  #newSession(clock: Clock, isAlive: () => boolean, orders: OrderSide | undefined): BrokerSession | undefined {
    if (this.o.broker === undefined) return undefined;
    return new BrokerSession({
      clock,
      log: silentLog,
      broker: cut<Broker>(this.o.broker, isAlive),
      servers: ['mqtt://broker'],
      clientId: this.clientId,
      credentials: async () => ({}),
      keepaliveSeconds: 30,
      insecure: true,
      random: this.o.random ?? (() => 0.5),
      identity: this.#identity(),
      prefix: 'podsched/v1',
      heartbeatSeconds: () => orders?.heartbeatSeconds() ?? 60,
      ...(orders && { inbox: orders.remote.inbox }),
      agentVersion: '1',
      clockSynced: () => true,
      seq: () => ++this.#seq,
      report: () => {},
    });
  }

  get clientId(): string {
    return `podsched-${this.nodeName}`;
  }

  #identity(): SessionIdentity {
    return {
      nodeName: this.nodeName,
      machine: `machine-of-${this.nodeName}`,
      bootId: this.bootId,
      boot: () => this.#boot,
      bootKnown: () => true,
      adoptBoot: async () => {},
      rightful: () => true,
      claim: async () => {},
      giveBack: async () => {},
      formerMachines: () => [],
    };
  }

  /** kill -9: nothing is flushed, calls under way are lost. */
  kill(): void {
    this.#alive.now = false;
    this.runtime.dropClients();
    this.o.broker?.cut(this.clientId);
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

  /** What a reader of the broker sees under this node. */
  topics(): Readonly<Record<string, string>> {
    const all = this.o.broker?.retainedNow(`${this.root}/`) ?? Object.fromEntries(this.retained);
    return Object.fromEntries(Object.entries(all).map(([topic, payload]) => [topic.slice(this.root.length + 1), payload]));
  }

  pod(name: string): ToldPod | undefined {
    return this.#read<ToldPod>(`pods/default/${name}`);
  }

  sync(name: string): SyncStatus | undefined {
    return this.#read<SyncStatus>(`sync/default/${name}`);
  }

  file(name: string): FileStatus | undefined {
    return this.#read<FileStatus>(`sync/_files/${escapeFileName(name)}`);
  }

  online(): NodeOnline | undefined {
    return this.#read<NodeOnline>('online');
  }

  toldPods(): ToldPod[] {
    return Object.entries(this.topics()).flatMap(([t, p]) => (t.startsWith('pods/') ? [JSON.parse(p) as ToldPod] : []));
  }

  #read<T>(level: string): T | undefined {
    const text = this.topics()[level];
    return text === undefined ? undefined : (JSON.parse(text) as T);
  }
}

function mustHave(session: BrokerSession | undefined): BrokerSession {
  if (session === undefined) throw new Error('orders come from a broker: give the world one');
  return session;
}

export const noLogs: LogFolders = {
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
