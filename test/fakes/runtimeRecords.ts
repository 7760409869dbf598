/** What a FakeRuntime remembers, its words for the port, and what it watches for. */
import type { PodUid } from '../../src/api/objects.ts';
import type { ContainerConfig, ImagePlatform, SandboxConfig } from '../../src/container/runtime.ts';
import type {
  Container,
  ContainerId,
  ContainerState,
  ContainerStatus,
  Sandbox,
  SandboxId,
  SandboxStatus,
} from '../../src/container/words.ts';
import { labels } from '../../src/container/words.ts';
import type { WallTime } from '../../src/world/clock.ts';

/** What the process of one container does. Times in milliseconds on the clock. */
export interface ProcessBehaviour {
  /** It ends by itself so long after its start; absent: it runs until it is stopped. */
  readonly exitAfterMs?: number;
  readonly exitCode?: number;
  /** What a command run in it does, by the command and the container as it is now; absent or undefined: it succeeds at once, saying nothing. */
  readonly exec?: (
    command: readonly string[],
    config: ContainerConfig,
  ) => { exitCode?: number; stdout?: string; stderr?: string; takesMs?: number } | undefined;
  /** TERM does nothing: KILL at the end of the grace. */
  readonly ignoresTerm?: boolean;
  /** From TERM to the end; default 0. */
  readonly stopDelayMs?: number;
  /** Exit code after TERM; default 143. */
  readonly termExitCode?: number;
  /** StartContainer fails with this text, and the container is exited 128 `StartError`. */
  readonly startError?: string;
}

export interface FakeImage {
  readonly state: 'present' | 'pullable' | 'failing';
  readonly id?: string;
  readonly uid?: number;
  readonly username?: string;
  readonly sizeBytes?: number;
  readonly platform?: ImagePlatform;
  readonly pinned?: boolean;
  /** What PullImage rejects with while failing. */
  readonly error?: Error;
  readonly pullMs?: number;
}

export interface FakeSandbox {
  readonly id: SandboxId;
  readonly config: SandboxConfig;
  readonly runtimeHandler: string;
  state: 'ready' | 'notready';
  readonly createdAt: WallTime;
  readonly ip: string;
}

export interface FakeContainer {
  readonly id: ContainerId;
  readonly sandboxId: SandboxId;
  /** As it is now: an update of its resources is in it. */
  config: ContainerConfig;
  readonly podUid: PodUid;
  state: ContainerState;
  readonly createdAt: WallTime;
  startedAt?: WallTime;
  finishedAt?: WallTime;
  exitCode: number;
  reason: string;
  message: string;
  behaviour: ProcessBehaviour;
  termSent: boolean;
  /** Ends its timers, and wakes who waits for its end. */
  readonly ended: AbortController;
}

/** The id a fake image has when none was given: stable by name. */
export const imageId = (name: string): string => `sha256:${Buffer.from(name).toString('hex').padEnd(64, '0').slice(0, 64)}`;

/** Of one owner (the managed label) and one full name: pods of somebody else are not watched against ours. */
const samePodName = (a: SandboxConfig, b: SandboxConfig): boolean =>
  a.labels[labels.managed] === b.labels[labels.managed] && a.namespace === b.namespace && a.name === b.name;
export const sandboxName = (s: SandboxConfig): string => `${s.name}_${s.namespace}_${s.uid}_${s.attempt}`;
export const containerName = (c: ContainerConfig, s: SandboxConfig): string => `${c.name}_${s.name}_${s.namespace}_${s.uid}_${c.attempt}`;

export const sandboxWord = (s: FakeSandbox): Sandbox => ({
  id: s.id,
  name: s.config.name,
  namespace: s.config.namespace,
  uid: s.config.uid,
  attempt: s.config.attempt,
  state: s.state,
  createdAt: s.createdAt,
  labels: { ...s.config.labels },
  annotations: { ...s.config.annotations },
});

export const containerWord = (c: FakeContainer): Container => ({
  id: c.id,
  sandboxId: c.sandboxId,
  name: c.config.name,
  attempt: c.config.attempt,
  image: c.config.image,
  imageRef: c.config.image,
  state: c.state,
  createdAt: c.createdAt,
  labels: { ...c.config.labels },
  annotations: { ...c.config.annotations },
});

export const sandboxStatusWord = (s: FakeSandbox): SandboxStatus => {
  const networkMode = s.config.namespaces.network;
  return {
    ...sandboxWord(s),
    networkMode,
    network: { ip: s.state === 'ready' && networkMode === 'POD' ? s.ip : '', additionalIps: [] },
  };
};

export const containerStatusWord = (c: FakeContainer, logDirectory: string): ContainerStatus => ({
  ...containerWord(c),
  image: c.config.userSpecifiedImage,
  ...(c.startedAt === undefined ? {} : { startedAt: c.startedAt }),
  ...(c.finishedAt === undefined ? {} : { finishedAt: c.finishedAt }),
  exitCode: c.exitCode,
  reason: c.reason === '' && c.state === 'exited' ? (c.exitCode === 0 ? 'Completed' : 'Error') : c.reason,
  message: c.message,
  logPath: `${logDirectory}/${c.config.logPath}`,
  mounts: c.config.mounts.map(({ containerPath, hostPath }) => ({ containerPath, hostPath })),
  ...(c.config.resources.cpusetCpus === undefined ? {} : { cpusetCpus: c.config.resources.cpusetCpus }),
});

/** A sandbox made while the same pod, or another of its full name, is still alive: one sentence each. */
export function sandboxViolations(config: SandboxConfig, sandboxes: Iterable<FakeSandbox>, alive: (s: FakeSandbox) => boolean): string[] {
  const found: string[] = [];
  for (const s of sandboxes) {
    if (!samePodName(s.config, config) || !alive(s)) continue;
    const who = s.config.uid === config.uid ? 'its own older sandbox' : `its predecessor ${s.config.uid}`;
    found.push(`sandbox of ${config.namespace}/${config.name} ${config.uid} made while ${who} (${s.id.slice(0, 8)}) lives`);
  }
  return found;
}

/** A container started while another of its name runs in a pod of that full name. */
export function startViolations(
  started: FakeContainer,
  pod: SandboxConfig,
  containers: Iterable<FakeContainer>,
  podOf: (c: FakeContainer) => SandboxConfig | undefined,
): string[] {
  const found: string[] = [];
  for (const other of containers) {
    const otherPod = podOf(other);
    if (otherPod === undefined || other.state !== 'running' || other.config.name !== started.config.name || !samePodName(otherPod, pod))
      continue;
    const what = `container ${started.config.name} of ${pod.namespace}/${pod.name}`;
    found.push(`${what} started (${started.id.slice(0, 8)}) while ${other.id.slice(0, 8)} runs`);
  }
  return found;
}
