/** KubeRuntime in a small world: virtual time, a fake runtime, log folders in memory, and somebody who lists the runtime for it. */

import type { DesiredPod } from '../../src/api/desired.ts';
import { toDesiredPod } from '../../src/api/instance.ts';
import type { PodUid } from '../../src/api/objects.ts';
import type { ObjectLookup } from '../../src/api/references.ts';
import type { ConfigMap, Container, ObjectMeta, PodSpec, Secret } from '../../src/api/v1.ts';
import { Backoff } from '../../src/async/backoff.ts';
import type { ContainerDevices } from '../../src/container/devices.ts';
import type { EnsureResult } from '../../src/container/ensureResult.ts';
import type { ProbeResult } from '../../src/container/probes.ts';
import type { Mount } from '../../src/container/runtime.ts';
import { type ContainerId, type ContainerStatus, newestFirst, type RuntimePodStatus } from '../../src/container/words.ts';
import { Adoption } from '../../src/kuberuntime/adopt.ts';
import type { MountInputs } from '../../src/kuberuntime/deps.ts';
import type { LogFolders } from '../../src/kuberuntime/logs.ts';
import { KubeRuntime, type PodSyncResult } from '../../src/kuberuntime/manager.ts';
import { type PodRef, podLogFolder } from '../../src/kuberuntime/names.ts';
import { RestartOnChange } from '../../src/kuberuntime/restartOnChange.ts';
import type { Monotonic } from '../../src/world/clock.ts';
import type { Log } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeClock, settle } from '../fakes/fakeClock.ts';
import { FakeRuntime } from '../fakes/fakeRuntime.ts';

export const container = (name: string, o: Partial<Container> = {}): Container => ({ name, image: 'localhost/busybox:1', ...o });

/** An accepted pod called `web` in `default` with the uid `uid-1`. */
export function desiredPod(spec: Partial<PodSpec>, o: { readonly uid?: string; readonly metadata?: Partial<ObjectMeta> } = {}): DesiredPod {
  return toDesiredPod(
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web', ...o.metadata },
      spec: { containers: [container('c')], ...spec },
    },
    { uid: (o.uid ?? 'uid-1') as PodUid, source: 'file:web.yaml', nodeName: 'pi', firstSeen: '2026-01-01T00:00:00Z' },
  );
}

/** Log folders as names: `<pod folder>/<container>/<n>.log`. */
export class MemoryLogs implements LogFolders {
  readonly folders = new Map<string, PodRef>();
  readonly files = new Set<string>();
  fail: Error | undefined;

  async ensure(pod: PodRef): Promise<void> {
    if (this.fail !== undefined) throw this.fail;
    this.folders.set(podLogFolder(pod), { uid: pod.uid, name: pod.name, namespace: pod.namespace });
  }
  async nextAttempt(pod: PodRef, name: string): Promise<number> {
    const prefix = `${podLogFolder(pod)}/${name}/`;
    const numbers = [...this.files].filter((f) => f.startsWith(prefix)).map((f) => Number.parseInt(f.slice(prefix.length), 10));
    return Math.max(-1, ...numbers) + 1;
  }
  async removeLog(pod: PodRef, name: string, attempt: number): Promise<void> {
    if (this.fail !== undefined) throw this.fail;
    this.files.delete(`${podLogFolder(pod)}/${name}/${attempt}.log`);
  }
  async removePod(pod: PodRef): Promise<void> {
    this.folders.delete(podLogFolder(pod));
  }
  async list(): Promise<readonly PodRef[]> {
    return [...this.folders.values()];
  }
}

export class House {
  readonly clock = new FakeClock();
  readonly runtime = new FakeRuntime({ clock: this.clock });
  readonly logs = new MemoryLogs();
  readonly store = new MemoryStore();
  /** `container|- Type Reason: message` */
  readonly events: string[] = [];
  readonly acted: string[] = [];
  /** Every line of the log, of any level. */
  readonly logged: string[] = [];
  readonly #say = (nouns: object, sentence: string): void => {
    this.logged.push(`${sentence} ${JSON.stringify(nouns)}`);
  };
  readonly log: Log = { debug: this.#say, info: this.#say, warn: this.#say, error: this.#say, child: () => this.log };
  /** By `Kind/namespace/name`. */
  readonly objects = new Map<string, ConfigMap | Secret>();
  readonly probes = new Map<string, { liveness?: ProbeResult; startup?: ProbeResult }>();
  readonly exits = new Map<string, Monotonic>();
  /** Pods of which a postStart was over. */
  readonly hooksEnded: string[] = [];
  readonly backoff = new Backoff(this.clock, () => ({ firstMs: 10_000, maxMs: 300_000 }));
  /** By container name, attempt and the pod's addresses. */
  mounts: (name: string, attempt: number, ips: readonly string[], inputs: MountInputs) => Promise<readonly Mount[]> = async () => [];
  /** CPUs of a container that is made; undefined: all. */
  cpusFor: (name: string) => Promise<string | undefined> = async () => undefined;
  /** `container cpus` of what was made. */
  readonly madeOn: string[] = [];
  /** By container name: what it is given of the node's devices; it may throw. */
  devices: (name: string) => ContainerDevices | undefined = () => undefined;
  /** Running containers whose lost device is back. */
  readonly back = new Set<string>();
  /** Sizes of huge pages. */
  readonly hugepageSizes: string[] = [];
  /** Replaces an image, or not, before it is looked for. */
  repair: (name: string, ended: ContainerStatus, signal: AbortSignal) => Promise<boolean> = async () => false;
  image: (name: string) => EnsureResult = () => ({ ok: true, image: { id: 'localhost/busybox:1', username: '' } });
  readonly adoption = new Adoption({
    store: this.store,
    scheme: '1',
    hashIn: () => undefined,
    event: (_pod, name, type, reason, message) => this.events.push(`${name ?? '-'} ${type} ${reason}: ${message}`),
  });
  readonly runStore = new MemoryStore();
  /** A test makes it anew, as a new agent does. */
  restartOnChange = this.newRestartOnChange();
  readonly kube = new KubeRuntime({
    clock: this.clock,
    log: this.log,
    runtime: this.runtime,
    logs: this.logs,
    objects: (kind, namespace, name) => this.objects.get(`${kind}/${namespace}/${name}`),
    lostDevices: { review: () => {}, isBack: (_desired, record) => this.back.has(record.name) },
    mounts: (_desired, spec, attempt, ips, inputs) => this.mounts(spec.name, attempt, ips, inputs),
    devices: (_desired, spec) => this.devices(spec.name),
    cpus: {
      cpusFor: (_desired, name) => this.cpusFor(name),
      started: () => {},
      made: (_uid, name, _id, cpus) => this.madeOn.push(`${name} ${cpus ?? 'all'}`),
    },
    ensureImage: async (_desired, spec) => this.image(spec.name),
    repairImage: (_desired, spec, ended, signal) => this.repair(spec.name, ended, signal),
    backoff: this.backoff,
    exitSeenAt: (id) => this.#exitSeenAt(id),
    event: (_pod, name, type, reason, message) => this.events.push(`${name ?? '-'} ${type} ${reason}: ${message}`),
    adoption: this.adoption,
    restartOnChange: {
      annotationsFor: (desired, spec) => this.restartOnChange.annotationsFor(desired, spec),
      review: (desired, status) => this.restartOnChange.review(desired, status),
      changed: (desired, record) => this.restartOnChange.changed(desired, record),
    },
    liveness: (id) => this.probes.get(id)?.liveness,
    startup: (id) => this.probes.get(id)?.startup,
    postStartEnded: (uid) => this.hooksEnded.push(uid),
    acted: (_uid, id) => this.acted.push(id),
    settings: {
      nodeName: 'pi',
      hugepageSizes: this.hugepageSizes,
      podLogsDir: '/var/log/pods',
      bootId: 'boot-1',
      nodeMemoryBytes: 8_000_000_000,
      cgroupDriver: () => 'cgroupfs',
      hostDns: () => ({ servers: ['192.0.2.1'], searches: [], options: [] }),
    },
  });

  newRestartOnChange(): RestartOnChange {
    const objects: ObjectLookup = (kind, namespace, name) => this.objects.get(`${kind}/${namespace}/${name}`);
    return new RestartOnChange({ log: this.log, objects, stateStore: this.store, runStore: this.runStore });
  }

  /** The pod as an inspection shows it now; the first look at an exit is the moment it was seen. */
  async inspect(desired: { uid: PodUid; name: string; namespace: string }): Promise<RuntimePodStatus> {
    const sandboxes = await Promise.all((await this.runtime.listSandboxes(desired.uid)).map((s) => this.runtime.sandboxStatus(s.id)));
    const containers = await Promise.all((await this.runtime.listContainers(desired.uid)).map((c) => this.runtime.containerStatus(c.id)));
    for (const c of containers) if (c.state === 'exited') this.#exitSeenAt(c.id);
    const { uid, name, namespace } = desired;
    return { uid, name, namespace, ips: [], sandboxes: sandboxes.sort(newestFirst), containers: containers.sort(newestFirst) };
  }

  async sync(desired: DesiredPod, signal: AbortSignal = new AbortController().signal): Promise<PodSyncResult> {
    return this.drive(this.kube.syncPod(desired, await this.inspect(desired), signal));
  }

  /** Lets as much time pass as `work` needs, and no more. */
  async drive<T>(work: Promise<T>): Promise<T> {
    let done = false;
    const end = (): void => {
      done = true;
    };
    work.then(end, end);
    for (;;) {
      await settle();
      if (done) return work;
      await this.clock.advance(this.clock.nextInMs ?? 0);
    }
  }

  /** Syncs until nothing is left to do. */
  async settle(desired: DesiredPod): Promise<PodSyncResult> {
    for (let i = 0; i < 20; i++) {
      const result = await this.sync(desired);
      if (!result.acted) return result;
    }
    throw new Error('the pod never settles');
  }

  id(name: string): ContainerId {
    const found = this.runtime.find('web', name);
    if (found === undefined) throw new Error(`no container ${name}`);
    return found.id;
  }

  /** Changing calls on the runtime since the last look, as `method name#attempt`. */
  deeds(): string[] {
    const calls = this.runtime.calls.splice(0).filter((c) => /^(run|stop|remove|create|start)/.test(c.method));
    return calls.map(({ method, args }) => `${method} ${this.#nameOf(args)}`);
  }

  #names = new Map<string, string>();
  #nameOf(args: readonly unknown[]): string {
    for (const [id, c] of this.runtime.containers) this.#names.set(id, `${c.config.name}#${c.config.attempt}`);
    for (const [id, s] of this.runtime.sandboxes) this.#names.set(id, `sandbox#${s.config.attempt}`);
    const [first, second] = args as [string | { attempt: number }, unknown];
    if (typeof first === 'object') return `sandbox#${first.attempt}`;
    if (typeof second === 'object') return `${(second as { name: string }).name}#${(second as { attempt: number }).attempt}`;
    return `${this.#names.get(first) ?? first.slice(0, 8)}${typeof second === 'number' ? ` ${second}s` : ''}`;
  }

  #exitSeenAt(id: ContainerId): Monotonic {
    const seen = this.exits.get(id) ?? this.clock.monotonic();
    this.exits.set(id, seen);
    return seen;
  }
}
