/**
 * The door to containerd: the Runtime port over CRI v1 on a Unix socket. It owns nothing but the connection and the
 * sandbox of each container it has seen (a container's status does not name it). No protobuf gets past this room, every call has a
 * deadline, nothing is tried again here: the caller knows when that makes sense. Mirrors kubelet v1.32 cri-client remote_runtime.go.
 */
import type { ChannelOptions } from '@grpc/grpc-js';
import type { PodUid } from '../api/objects.ts';
import type {
  ContainerConfig,
  ExecResult,
  LinuxResources,
  Runtime,
  RuntimeCondition,
  RuntimeEvent,
  RuntimeHandler,
  RuntimeVersion,
  SandboxConfig,
  StreamOptions,
  Streams,
  StreamTarget,
} from '../container/runtime.ts';
import { isNotFound, RuntimeError } from '../container/runtime.ts';
import type { ContainerStats } from '../container/stats.ts';
import type { Container, ContainerId, ContainerStatus, Sandbox, SandboxId, SandboxStatus } from '../container/words.ts';
import { labels } from '../container/words.ts';
import { type Clock, systemClock } from '../world/clock.ts';
import type { Log } from '../world/log.ts';
import { CriClient } from './client.ts';
import * as convert from './convert.ts';
import { named } from './errors.ts';
import { watchEvents } from './events.ts';
import { CgroupDriver, PodSandboxState, RuntimeService } from './gen/cri_pb.ts';
import { CriImages } from './images.ts';
import type { Shown } from './settle.ts';
import { containerStatsWord } from './stats.ts';
import { streamTarget } from './streaming.ts';

export interface CriOptions {
  /** `unix:///run/containerd/containerd.sock`, or the path alone. */
  readonly endpoint: string;
  /** The kubelet's runtimeRequestTimeout; default 2 min. */
  readonly requestTimeoutMs?: number;
  readonly log: Log;
  readonly clock?: Clock;
  /** More options of the gRPC channel, for tests. */
  readonly channelOptions?: ChannelOptions;
}

/**
 * How long each kind of call may take, from the request timeout T. Asking and listing is memory only in the runtime, so that a long silence
 * means it hangs; a deed may wait for a card that writes slowly; RunPodSandbox may also pull its image and waits for CNI; a pull has no
 * natural end (the runtime itself gives up where nothing moves), so its limit is only there for a call that is lost.
 */
const timeouts = (t: number) => ({ ask: Math.min(t, 10_000), list: Math.min(t, 30_000), act: t, runSandbox: 2 * t, pull: 60 * t });

/** A command without a limit (a hook) ends with its caller; a timer holds no more than 24 days. */
const noDeadlineMs = 2 ** 31 - 1;
const execMarginMs = 2000;

export class CriRuntime implements Runtime, Streams {
  /** Over the same connection. */
  readonly images: CriImages;
  readonly #client: CriClient;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #timeouts: ReturnType<typeof timeouts>;
  #sandboxOf = new Map<ContainerId, SandboxId>();
  /** Those that are known: who asks for them as containers makes the runtime write an error into its log. */
  #sandboxes: ReadonlySet<string> = new Set();

  constructor(o: CriOptions) {
    this.#clock = o.clock ?? systemClock;
    this.#client = new CriClient(o.endpoint, this.#clock, o.channelOptions);
    this.#log = o.log;
    this.#timeouts = timeouts(o.requestTimeoutMs ?? 120_000);
    this.images = new CriImages(this.#client, this.#timeouts);
  }

  async version(): Promise<RuntimeVersion> {
    const { runtimeName, runtimeVersion } = await this.#client.call(
      RuntimeService.method.version,
      { version: '0.1.0' },
      this.#timeouts.ask,
    );
    return { runtimeName, runtimeVersion };
  }

  async status(): Promise<readonly RuntimeCondition[]> {
    const { status } = await this.#client.call(RuntimeService.method.status, {}, this.#timeouts.ask);
    return status?.conditions.map(convert.conditionWord) ?? [];
  }

  /** CRI's RuntimeConfig (1.28 and later), else what containerd shows of its configuration. */
  async cgroupDriver(): Promise<'cgroupfs' | 'systemd' | undefined> {
    try {
      const { linux } = await this.#client.call(RuntimeService.method.runtimeConfig, {}, this.#timeouts.ask);
      if (linux === undefined) return undefined;
      return linux.cgroupDriver === CgroupDriver.SYSTEMD ? 'systemd' : 'cgroupfs';
    } catch (e) {
      if (!(e instanceof RuntimeError) || e.code !== 'unimplemented') throw e;
    }
    const { info } = await this.#client.call(RuntimeService.method.status, { verbose: true }, this.#timeouts.ask);
    const systemd = systemdCgroup(info.config);
    this.#log.debug({ systemd }, 'cgroup driver read from the configuration of the runtime');
    return systemd === undefined ? undefined : systemd ? 'systemd' : 'cgroupfs';
  }

  /** containerd 1.x shows it in its configuration; containerd 2 has it in a part that CRI does not show. */
  async sandboxImage(): Promise<string | undefined> {
    const { info } = await this.#client.call(RuntimeService.method.status, { verbose: true }, this.#timeouts.ask);
    return shownConfig(info.config).sandboxImage;
  }

  /** Where the runtime looks for the layers of images; undefined where it does not say. */
  async snapshotter(): Promise<string | undefined> {
    const { info } = await this.#client.call(RuntimeService.method.status, { verbose: true }, this.#timeouts.ask);
    return shownConfig(info.config).snapshotter;
  }

  async handlers(): Promise<readonly RuntimeHandler[]> {
    const { runtimeHandlers } = await this.#client.call(RuntimeService.method.status, {}, this.#timeouts.ask);
    return runtimeHandlers.map((h) => ({ name: h.name, recursiveReadOnlyMounts: h.features?.recursiveReadOnlyMounts ?? false }));
  }

  async listSandboxes(uid?: PodUid): Promise<readonly Sandbox[]> {
    const { items } = await this.#client.call(RuntimeService.method.listPodSandbox, { filter: podFilter(uid) }, this.#timeouts.list);
    const words = items.map(convert.sandboxWord);
    this.#know(
      uid === undefined,
      words.map(({ id }) => id),
    ); // a full list also tells which are no more
    return words;
  }

  async listContainers(uid?: PodUid): Promise<readonly Container[]> {
    const { containers } = await this.#client.call(RuntimeService.method.listContainers, { filter: podFilter(uid) }, this.#timeouts.list);
    const words = containers.map(convert.containerWord);
    // a full list also tells which containers are no more
    if (uid === undefined) this.#sandboxOf = new Map();
    for (const c of words) this.#sandboxOf.set(c.id, c.sandboxId);
    return words;
  }

  async listContainerStats(uid?: PodUid): Promise<readonly ContainerStats[]> {
    const { stats } = await this.#client.call(RuntimeService.method.listContainerStats, { filter: podFilter(uid) }, this.#timeouts.list);
    return stats.map(containerStatsWord);
  }

  async sandboxStatus(id: SandboxId): Promise<SandboxStatus> {
    const { status } = await this.#client.call(RuntimeService.method.podSandboxStatus, { podSandboxId: id }, this.#timeouts.list);
    if (status === undefined) throw new RuntimeError('unknown', `the runtime gave no status of sandbox ${id}`);
    return convert.sandboxStatusWord(status);
  }

  async containerStatus(id: ContainerId): Promise<ContainerStatus> {
    const { status } = await this.#client.call(RuntimeService.method.containerStatus, { containerId: id }, this.#timeouts.list);
    if (status === undefined) throw new RuntimeError('unknown', `the runtime gave no status of container ${id}`);
    return convert.containerStatusWord(status, await this.#sandboxOfContainer(id));
  }

  async runSandbox(config: SandboxConfig, runtimeHandler: string): Promise<SandboxId> {
    const request = { config: convert.sandboxConfigMessage(config), runtimeHandler };
    const { podSandboxId } = await this.#client.call(RuntimeService.method.runPodSandbox, request, this.#timeouts.runSandbox);
    const id = named(podSandboxId, 'RunPodSandbox') as SandboxId;
    this.#know(false, [id]);
    return id;
  }

  async stopSandbox(id: SandboxId): Promise<void> {
    await goneIsFine(this.#client.call(RuntimeService.method.stopPodSandbox, { podSandboxId: id }, this.#timeouts.act));
  }

  async removeSandbox(id: SandboxId): Promise<void> {
    await goneIsFine(this.#client.call(RuntimeService.method.removePodSandbox, { podSandboxId: id }, this.#timeouts.act));
  }

  async createContainer(sandboxId: SandboxId, config: ContainerConfig, sandboxConfig: SandboxConfig): Promise<ContainerId> {
    const request = {
      podSandboxId: sandboxId,
      config: convert.containerConfigMessage(config),
      sandboxConfig: convert.sandboxConfigMessage(sandboxConfig),
    };
    const { containerId } = await this.#client.call(RuntimeService.method.createContainer, request, this.#timeouts.act);
    const id = named(containerId, 'CreateContainer') as ContainerId;
    this.#sandboxOf.set(id, sandboxId);
    return id;
  }

  async startContainer(id: ContainerId): Promise<void> {
    await this.#client.call(RuntimeService.method.startContainer, { containerId: id }, this.#timeouts.act);
  }

  /** A stop whose caller goes away leaves the container running: the deadline is the grace and a whole request timeout more. */
  async stopContainer(id: ContainerId, graceSeconds: number): Promise<void> {
    const timeout = BigInt(Math.max(0, Math.floor(graceSeconds)));
    const deadlineMs = this.#timeouts.act + Number(timeout) * 1000;
    await goneIsFine(this.#client.call(RuntimeService.method.stopContainer, { containerId: id, timeout }, deadlineMs));
  }

  async removeContainer(id: ContainerId): Promise<void> {
    await goneIsFine(this.#client.call(RuntimeService.method.removeContainer, { containerId: id }, this.#timeouts.act));
  }

  async updateContainerResources(id: ContainerId, resources: LinuxResources): Promise<void> {
    const request = { containerId: id, linux: convert.resourcesMessage(resources) };
    await this.#client.call(RuntimeService.method.updateContainerResources, request, this.#timeouts.act);
  }

  /** Our own deadline is a little above the runtime's, so that the runtime's end of the command is what is heard. */
  async execSync(id: ContainerId, command: readonly string[], timeoutSeconds: number, signal?: AbortSignal): Promise<ExecResult> {
    const timeout = Math.max(0, Math.ceil(timeoutSeconds));
    const request = { containerId: id, cmd: [...command], timeout: BigInt(timeout) };
    const deadlineMs = timeout === 0 ? noDeadlineMs : timeout * 1000 + execMarginMs;
    const { exitCode, stdout, stderr } = await this.#client.call(RuntimeService.method.execSync, request, deadlineMs, signal, 'alone');
    return { exitCode, stdout, stderr };
  }

  async execTarget(id: ContainerId, command: readonly string[], o: StreamOptions): Promise<StreamTarget> {
    const request = { containerId: id, cmd: [...command], ...o };
    const { url } = await this.#client.call(RuntimeService.method.exec, request, this.#timeouts.ask);
    return streamTarget(url);
  }

  async attachTarget(id: ContainerId, o: StreamOptions): Promise<StreamTarget> {
    const { url } = await this.#client.call(RuntimeService.method.attach, { containerId: id, ...o }, this.#timeouts.ask);
    return streamTarget(url);
  }

  async reopenLog(id: ContainerId): Promise<void> {
    await this.#client.call(RuntimeService.method.reopenContainerLog, { containerId: id }, this.#timeouts.act);
  }

  events(onEvent: (e: RuntimeEvent) => void, onReady: () => void, signal: AbortSignal): Promise<void> {
    const deps = {
      clock: this.#clock,
      channel: this.#client.newChannel(),
      shown: (id: string) => this.#shown(id),
      readyTimeoutMs: this.#timeouts.ask,
    };
    return watchEvents(deps, onEvent, onReady, signal);
  }

  /** No further calls; the event stream ends by its signal. */
  close(): void {
    this.#client.close();
  }

  /** An event names a container or a sandbox, and does not say which. */
  async #shown(id: string): Promise<Shown> {
    const { containerStatus, podSandboxStatus } = RuntimeService.method;
    const { ask } = this.#timeouts;
    try {
      if (!this.#sandboxes.has(id)) {
        const { status } = await this.#client.call(containerStatus, { containerId: id }, ask);
        const state = convert.containerState(status?.state);
        return state === 'created' || state === 'running' ? state : 'ended';
      }
    } catch (e) {
      if (!isNotFound(e)) throw e;
    }
    try {
      const { status } = await this.#client.call(podSandboxStatus, { podSandboxId: id }, ask);
      this.#know(false, [id]);
      return status?.state === PodSandboxState.SANDBOX_READY ? 'running' : 'ended';
    } catch (e) {
      if (!isNotFound(e)) throw e;
      return 'missing';
    }
  }

  #know(isAll: boolean, sandboxes: readonly string[]): void {
    this.#sandboxes = new Set([...(isAll ? [] : this.#sandboxes), ...sandboxes]);
  }

  async #sandboxOfContainer(id: ContainerId): Promise<SandboxId> {
    const known = this.#sandboxOf.get(id);
    if (known !== undefined) return known;
    const { containers } = await this.#client.call(RuntimeService.method.listContainers, { filter: { id } }, this.#timeouts.list);
    const sandboxId = containers[0]?.podSandboxId;
    if (sandboxId === undefined) throw new RuntimeError('notFound', `container ${id} is in no list of the runtime`);
    this.#sandboxOf.set(id, sandboxId as SandboxId);
    return sandboxId as SandboxId;
  }
}

const podFilter = (uid: PodUid | undefined): { labelSelector: Record<string, string> } => ({
  labelSelector: uid === undefined ? {} : { [labels.podUid]: uid },
});

/** Removing what is not there is success. */
async function goneIsFine(call: Promise<unknown>): Promise<void> {
  await call.catch((e) => {
    if (!isNotFound(e)) throw e;
  });
}

/** SystemdCgroup of the default runtime, from the JSON text that containerd 1.x gives in a verbose status. */
export function systemdCgroup(config: string | undefined): boolean | undefined {
  if (config === undefined) return undefined;
  try {
    const { containerd } = JSON.parse(config) as {
      containerd?: { defaultRuntimeName?: string; runtimes?: Record<string, { options?: { SystemdCgroup?: boolean } | null }> };
    };
    const runtime = containerd?.runtimes?.[containerd.defaultRuntimeName ?? ''];
    return runtime === undefined ? undefined : (runtime.options?.SystemdCgroup ?? false);
  } catch {
    return undefined; // not JSON: a runtime that shows something else
  }
}

/** The image of sandboxes and the snapshotter, from the JSON text that containerd 1.x gives in a verbose status. */
export function shownConfig(config: string | undefined): { readonly sandboxImage?: string; readonly snapshotter?: string } {
  if (config === undefined) return {};
  const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
  try {
    const shown = JSON.parse(config) as { sandboxImage?: unknown; containerd?: { snapshotter?: unknown } } | null;
    const sandboxImage = text(shown?.sandboxImage);
    const snapshotter = text(shown?.containerd?.snapshotter);
    return { ...(sandboxImage !== undefined && { sandboxImage }), ...(snapshotter !== undefined && { snapshotter }) };
  } catch {
    return {}; // not JSON: a runtime that shows something else
  }
}
