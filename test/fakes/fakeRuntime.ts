/**
 * A container runtime in memory, on a Clock: containerd's manners (names are reserved, a dead sandbox takes no container, a reboot leaves
 * exited records) with a settable process in each container. It keeps watch itself: what must never happen is written to `violations`.
 */
import type { PodUid } from '../../src/api/objects.ts';
import {
  type ContainerConfig,
  type ContentStore,
  type ExecResult,
  type ImageFilesystem,
  type ImageInfo,
  type ImageService,
  type Ingest,
  type LinuxResources,
  type PullOptions,
  type Runtime,
  type RuntimeCondition,
  RuntimeError,
  type RuntimeEvent,
  type RuntimeHandler,
  type RuntimeVersion,
  type SandboxConfig,
} from '../../src/container/runtime.ts';
import type { ContainerStats } from '../../src/container/stats.ts';
import type { Container, ContainerId, ContainerStatus, Sandbox, SandboxId, SandboxStatus } from '../../src/container/words.ts';
import { labels } from '../../src/container/words.ts';
import { FakeMachine, type FakeMethod } from './fakeMachine.ts';
import {
  containerName,
  containerStatusWord,
  containerWord,
  type FakeSandbox,
  imageId,
  sandboxName,
  sandboxStatusWord,
  sandboxViolations,
  sandboxWord,
  startViolations,
} from './runtimeRecords.ts';

export class FakeRuntime extends FakeMachine implements Runtime, ImageService, ContentStore {
  version(): Promise<RuntimeVersion> {
    return this.#call('version', [], () => this.runtimeVersion);
  }

  status(): Promise<readonly RuntimeCondition[]> {
    return this.#call('status', [], () => [...this.conditions]);
  }

  cgroupDriver(): Promise<'cgroupfs' | 'systemd' | undefined> {
    return this.#call('cgroupDriver', [], () => this.driver);
  }

  sandboxImage(): Promise<string | undefined> {
    return this.#call('sandboxImage', [], () => this.pauseImage);
  }

  handlers(): Promise<readonly RuntimeHandler[]> {
    return this.#call('handlers', [], () => this.runtimeHandlers);
  }

  listSandboxes(uid?: PodUid): Promise<readonly Sandbox[]> {
    return this.#call('listSandboxes', uid === undefined ? [] : [uid], () =>
      [...this.sandboxes.values()].filter((s) => uid === undefined || s.config.labels[labels.podUid] === uid).map(sandboxWord),
    );
  }

  listContainers(uid?: PodUid): Promise<readonly Container[]> {
    return this.#call('listContainers', uid === undefined ? [] : [uid], () =>
      [...this.containers.values()].filter((c) => uid === undefined || c.config.labels[labels.podUid] === uid).map(containerWord),
    );
  }

  /** Running ones only. */
  listContainerStats(uid?: PodUid): Promise<readonly ContainerStats[]> {
    return this.#call('listContainerStats', uid === undefined ? [] : [uid], () =>
      [...this.containers.values()]
        .filter((c) => c.state === 'running' && (uid === undefined || c.config.labels[labels.podUid] === uid))
        .map(({ id, config: { name, attempt, labels } }) => ({ id, name, attempt, labels: { ...labels }, ...this.usage.get(id) })),
    );
  }

  sandboxStatus(id: SandboxId): Promise<SandboxStatus> {
    return this.#call('sandboxStatus', [id], () => sandboxStatusWord(this.sandbox(id)));
  }

  containerStatus(id: ContainerId): Promise<ContainerStatus> {
    return this.#call('containerStatus', [id], () => {
      const c = this.container(id);
      return containerStatusWord(c, this.sandboxes.get(c.sandboxId)?.config.logDirectory ?? '');
    });
  }

  runSandbox(config: SandboxConfig, runtimeHandler: string): Promise<SandboxId> {
    return this.#call('runSandbox', [config, runtimeHandler], () => {
      const name = sandboxName(config);
      for (const s of this.sandboxes.values()) {
        if (sandboxName(s.config) === name) {
          throw new RuntimeError('unknown', `failed to reserve sandbox name "${name}": name "${name}" is reserved for "${s.id}"`);
        }
      }
      const alive = (s: FakeSandbox) => s.state === 'ready' || this.containersIn(s.id).some((c) => c.state === 'running');
      this.violations.push(...sandboxViolations(config, this.sandboxes.values(), alive));
      const id = this.newId() as SandboxId;
      const n = Number.parseInt(id.slice(0, 8), 16);
      const ip = `10.88.${n >> 8}.${n & 255}`;
      this.sandboxes.set(id, { id, config, runtimeHandler, state: 'ready', createdAt: this.clock.now(), ip });
      this.emit('create', id);
      this.emit('start', id);
      return id;
    });
  }

  stopSandbox(id: SandboxId): Promise<void> {
    return this.#call('stopSandbox', [id], () => this.stopAll(id));
  }

  removeSandbox(id: SandboxId): Promise<void> {
    return this.#call('removeSandbox', [id], () => {
      if (!this.sandboxes.has(id)) return;
      this.stopAll(id);
      for (const c of this.containersIn(id)) this.drop(c);
      this.sandboxes.delete(id);
      this.emit('delete', id);
    });
  }

  createContainer(sandboxId: SandboxId, config: ContainerConfig, sandboxConfig: SandboxConfig): Promise<ContainerId> {
    return this.#call('createContainer', [sandboxId, config, sandboxConfig], () => {
      const s = this.sandbox(sandboxId);
      if (s.state === 'notready')
        throw new RuntimeError(
          'notFound',
          `failed to get sandbox container task: no running task found: task ${sandboxId} not found: not found`,
        );
      const name = containerName(config, s.config);
      for (const c of this.containers.values()) {
        const other = this.sandboxes.get(c.sandboxId);
        if (other !== undefined && containerName(c.config, other.config) === name) {
          throw new RuntimeError('unknown', `failed to reserve container name "${name}": name "${name}" is reserved for "${c.id}"`);
        }
      }
      if (config.privileged && !s.config.privileged) throw new RuntimeError('unknown', 'no privileged container allowed in sandbox');
      if (this.presentImage(config.image) === undefined)
        throw new RuntimeError('notFound', `failed to resolve image "${config.image}": not found`);
      const absent = config.devices?.find((d) => this.absentDevices.has(d.hostPath));
      if (absent !== undefined)
        throw new RuntimeError('unknown', `failed to generate container spec: lstat ${absent.hostPath}: no such file or directory`);
      const id = this.newId() as ContainerId;
      this.containers.set(id, {
        id,
        sandboxId,
        config,
        podUid: s.config.uid,
        state: 'created',
        createdAt: this.clock.now(),
        exitCode: 0,
        reason: '',
        message: '',
        behaviour: {},
        termSent: false,
        ended: new AbortController(),
      });
      this.emit('create', id);
      return id;
    });
  }

  startContainer(id: ContainerId): Promise<void> {
    return this.#call('startContainer', [id], () => {
      const c = this.container(id);
      if (c.state !== 'created') throw new RuntimeError('unknown', `container is in CONTAINER_${c.state.toUpperCase()} state`);
      const s = this.sandbox(c.sandboxId);
      if (s.state === 'notready') throw new RuntimeError('unknown', `sandbox container "${s.id}" is not running`);
      c.behaviour = this.behaviourOf(c.config.name, c.config, s.config) ?? {};
      if (c.behaviour.startError !== undefined) {
        Object.assign(c, { reason: 'StartError', message: c.behaviour.startError });
        this.end(c, 128, false);
        throw new RuntimeError('unknown', `failed to create containerd task: ${c.behaviour.startError}`);
      }
      this.violations.push(...startViolations(c, s.config, this.containers.values(), (o) => this.sandboxes.get(o.sandboxId)?.config));
      c.state = 'running';
      c.startedAt = this.clock.now();
      this.emit('start', id);
      if (c.behaviour.exitAfterMs !== undefined) this.later(c, c.behaviour.exitAfterMs, () => this.end(c, c.behaviour.exitCode ?? 0));
    });
  }

  stopContainer(id: ContainerId, graceSeconds: number): Promise<void> {
    return this.#call(
      'stopContainer',
      [id, graceSeconds],
      async () => {
        const c = this.containers.get(id);
        if (c === undefined || c.state !== 'running') return;
        if (graceSeconds > 0) {
          if (!c.termSent && !c.behaviour.ignoresTerm) {
            this.later(c, c.behaviour.stopDelayMs ?? 0, () => this.end(c, c.behaviour.termExitCode ?? 143));
          }
          c.termSent = true;
          await this.faults.wait(graceSeconds * 1000, c.ended.signal);
        }
        this.end(c, 137);
      },
      graceSeconds * 1000,
    );
  }

  removeContainer(id: ContainerId): Promise<void> {
    return this.#call('removeContainer', [id], () => {
      const c = this.containers.get(id);
      if (c !== undefined) this.drop(c);
    });
  }

  updateContainerResources(id: ContainerId, resources: LinuxResources): Promise<void> {
    return this.#call('updateContainerResources', [id, resources], () => {
      const c = this.container(id);
      c.config = { ...c.config, resources: { ...c.config.resources, ...resources } };
    });
  }

  /** What the container's behaviour says of the command; absent: it succeeds at once. */
  execSync(id: ContainerId, command: readonly string[], timeoutSeconds: number, signal?: AbortSignal): Promise<ExecResult> {
    return this.#call(
      'execSync',
      [id, command, timeoutSeconds],
      async () => {
        const c = this.container(id);
        if (c.state !== 'running') throw new RuntimeError('unknown', `container is in CONTAINER_${c.state.toUpperCase()} state`);
        const { exitCode = 0, stdout = '', stderr = '', takesMs = 0 } = c.behaviour.exec?.(command, c.config) ?? {};
        const limitMs = timeoutSeconds > 0 ? timeoutSeconds * 1000 : Number.POSITIVE_INFINITY;
        if (takesMs > 0) await this.clock.sleep(Math.min(takesMs, limitMs), signal);
        if (takesMs > limitMs)
          throw new RuntimeError(
            'deadlineExceeded',
            `failed to exec in container: timeout ${timeoutSeconds}s exceeded: context deadline exceeded`,
          );
        if (c.state !== 'running') return { exitCode: 137, stdout: new Uint8Array(), stderr: new Uint8Array() };
        return { exitCode, stdout: Buffer.from(stdout), stderr: Buffer.from(stderr) };
      },
      timeoutSeconds * 1000,
    );
  }

  reopenLog(id: ContainerId): Promise<void> {
    return this.#call('reopenLog', [id], () => {
      if (this.container(id).state !== 'running') throw new RuntimeError('unknown', 'container is not running');
    });
  }

  events(onEvent: (e: RuntimeEvent) => void, onReady: () => void, signal: AbortSignal): Promise<void> {
    this.calls.push({ method: 'events', args: [], at: this.clock.monotonic() });
    if (!this.eventsImplemented) return Promise.reject(new RuntimeError('unimplemented', 'unknown method GetContainerEvents'));
    if (this.faults.away !== undefined) return Promise.reject(this.faults.away);
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const stop = () => {
        this.eventReaders.delete(reader);
        resolve();
      };
      const reader: Parameters<typeof this.eventReaders.add>[0] = {
        onEvent,
        fail: (e) => {
          signal.removeEventListener('abort', stop);
          reject(e);
        },
      };
      this.eventReaders.add(reader);
      signal.addEventListener('abort', stop, { once: true });
      onReady();
    });
  }

  listImages(): Promise<readonly ImageInfo[]> {
    return this.#call('listImages', [], () => [...this.images].flatMap(([name, i]) => (i.state === 'present' ? this.imageInfo(name) : [])));
  }

  removeImage(image: string): Promise<void> {
    return this.#call('removeImage', [image], () => this.#unname(image));
  }

  imageFilesystems(): Promise<readonly ImageFilesystem[]> {
    return this.#call('imageFilesystems', [], () => this.filesystems);
  }

  ingests(): Promise<readonly Ingest[]> {
    return this.#call('ingests', [], () => this.writing);
  }

  target(name: string): Promise<string | undefined> {
    return this.#call('target', [name], () => this.presentImage(name)?.id);
  }

  labelImage(name: string, labels: Readonly<Record<string, string>>): Promise<void> {
    return this.#call('labelImage', [name, labels], () => {
      if (this.presentImage(name) === undefined) throw new RuntimeError('notFound', `image "${name}": not found`);
    });
  }

  dropImage(name: string): Promise<void> {
    return this.#call('dropImage', [name], () => this.#unname(name));
  }

  dropContent(digest: string): Promise<void> {
    return this.#call('dropContent', [digest], () => undefined);
  }

  /** It can be pulled again. */
  #unname(nameOrId: string): void {
    for (const [name, image] of this.images) {
      if (image.state === 'present' && (name === nameOrId || (image.id ?? imageId(name)) === nameOrId))
        this.images.set(name, { ...image, state: 'pullable' });
    }
  }

  imageStatus(image: string): Promise<ImageInfo | undefined> {
    return this.#call('imageStatus', [image], () => this.presentImage(image));
  }

  pullImage(image: string, { signal }: PullOptions = {}): Promise<string> {
    return this.#call('pullImage', [image], async () => {
      const known = this.images.get(image);
      const failed = `failed to pull and unpack image "${image}"`;
      if (known === undefined) throw new RuntimeError('notFound', `${failed}: failed to resolve reference "${image}": ${image}: not found`);
      if (known.pullMs !== undefined) await this.clock.sleep(known.pullMs, signal);
      if (known.state === 'failing') throw known.error ?? new RuntimeError('unknown', `${failed}: connection refused`);
      this.images.set(image, { ...known, state: 'present' });
      return known.id ?? imageId(image);
    });
  }

  #call<T>(method: FakeMethod, args: readonly unknown[], deed: () => T | Promise<T>, extraTimeoutMs = 0): Promise<T> {
    return this.faults.call(method, args, deed, extraTimeoutMs);
  }
}
