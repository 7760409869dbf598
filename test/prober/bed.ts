/** A prober on a fake clock with containers as the test says they are, and commands that answer as it wants. */
import type { DesiredPod } from '../../src/api/desired.ts';
import type { PodUid } from '../../src/api/objects.ts';
import type { Container, Pod, Probe } from '../../src/api/v1.ts';
import { type ExecResult, RuntimeError } from '../../src/container/runtime.ts';
import {
  type ContainerId,
  type ContainerStatus,
  emptyPodStatus,
  type RuntimePodStatus,
  type SandboxId,
} from '../../src/container/words.ts';
import { ProbeManager } from '../../src/prober/manager.ts';
import type { WallTime } from '../../src/world/clock.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { desiredPod } from '../pod/desiredPod.ts';

export interface Answer {
  readonly exitCode?: number;
  readonly takesMs?: number;
  readonly error?: Error;
  readonly output?: string;
}

export interface Ran {
  readonly id: string;
  readonly command: readonly string[];
  readonly timeoutSeconds: number;
  readonly at: number;
}

type Shown = Partial<Omit<ContainerStatus, 'id'>> & { readonly id: string };

/** A probe whose command is its type's name. */
export const asks = (what: string, more: Partial<Probe> = {}): Probe => ({ exec: { command: [what] }, periodSeconds: 10, ...more });

export class Bed {
  readonly clock = new FakeClock();
  store = new MemoryStore();
  readonly statuses = new Map<PodUid, RuntimePodStatus>();
  readonly ran: Ran[] = [];
  readonly events: string[] = [];
  readonly changed: string[] = [];
  /** By the command's first word. */
  answers: Record<string, Answer | ((id: string) => Answer)> = {};
  random = 0;
  maxExecProbes = 4;
  /** What the runtime says of a container beside the news: it has ended, is gone, or cannot be asked; else it runs. */
  readonly over = new Map<string, 'exited' | 'gone' | 'silent' | 'hung'>();
  /** How often the runtime was asked for a container. */
  asked = 0;
  /** Containers whose postStart is not over. */
  readonly starting = new Set<string>();
  running = 0;
  mostRunning = 0;
  readonly zero = this.clock.monotonic();
  prober: ProbeManager = this.agent();

  /** Milliseconds since the bed stands. */
  get now(): number {
    return this.clock.monotonic() - this.zero;
  }

  /** A (new) agent on the same store. */
  agent(): ProbeManager {
    this.prober = new ProbeManager({
      clock: this.clock,
      log: silentLog,
      store: this.store,
      random: () => this.random,
      runtime: {
        execSync: (id, command, timeoutSeconds, signal) => this.#exec(id, command, timeoutSeconds, signal),
        containerStatus: (id) => this.#status(id),
      },
      grpcCheck: async () => ({ serving: true, message: '' }),
      statusOf: (uid) => this.statuses.get(uid),
      starting: (id) => this.starting.has(id),
      hostIps: () => ['127.0.0.1'],
      event: (pod, container, type, reason, message) => this.events.push(`${pod.name}/${container} ${type} ${reason} ${message}`),
      changed: (uid) => this.changed.push(uid),
      maxExecProbes: this.maxExecProbes,
    });
    return this.prober;
  }

  /** Long after the agent's start, so that first turns are not spread. */
  async settled(): Promise<void> {
    await this.prober.load();
    await this.clock.advance(3_600_000);
  }

  pod(name: string, container: Partial<Container>, spec: Partial<Pod['spec']> = {}): DesiredPod {
    return desiredPod(name, `uid-${name}`, { spec: { ...spec, containers: [{ name: 'app', image: 'i', ...container }] } });
  }

  /** The pod's containers as the runtime shows them from now on; the prober is not told. */
  shows(pod: DesiredPod, ...containers: readonly Shown[]): void {
    const { uid, name, namespace } = pod;
    this.statuses.set(uid, {
      ...emptyPodStatus(uid, name, namespace),
      ips: ['127.0.0.1'],
      containers: containers.map((c) => this.#record(c)),
    });
  }

  commands(what: string): number[] {
    return this.ran.filter((r) => r.command[0] === what).map((r) => r.at);
  }

  #record(c: Shown): ContainerStatus {
    return {
      sandboxId: 's' as SandboxId,
      name: 'app',
      attempt: 0,
      image: 'i',
      imageRef: 'i',
      state: 'running',
      createdAt: this.clock.now(),
      startedAt: this.clock.now() as WallTime,
      labels: {},
      annotations: {},
      exitCode: 0,
      reason: '',
      message: '',
      logPath: '',
      mounts: [],
      ...c,
      id: c.id as ContainerId,
    };
  }

  async #status(id: string): Promise<ContainerStatus> {
    this.asked += 1;
    const over = this.over.get(id);
    if (over === 'gone') throw new RuntimeError('notFound', `container "${id}": not found`);
    if (over === 'silent') throw new RuntimeError('unavailable', 'connect ENOENT');
    if (over === 'hung') await new Promise(() => {});
    return this.#record({ id, state: over === 'exited' ? 'exited' : 'running' });
  }

  async #exec(id: string, command: readonly string[], timeoutSeconds: number, signal?: AbortSignal): Promise<ExecResult> {
    this.ran.push({ id, command, timeoutSeconds, at: this.now });
    this.running += 1;
    this.mostRunning = Math.max(this.mostRunning, this.running);
    try {
      const wanted = this.answers[command[0] ?? ''] ?? {};
      const { exitCode = 0, takesMs = 0, error, output = '' } = typeof wanted === 'function' ? wanted(id) : wanted;
      if (error !== undefined) throw error;
      const limitMs = timeoutSeconds * 1000;
      if (takesMs > 0) await this.clock.sleep(Math.min(takesMs, limitMs), signal);
      if (takesMs > limitMs) throw new RuntimeError('deadlineExceeded', 'timeout');
      return { exitCode, stdout: Buffer.from(output), stderr: new Uint8Array() };
    } finally {
      this.running -= 1;
    }
  }
}
