/** The pods that are measured: as a manifest for the agent, and as the same CRI calls made by hand. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { PodUid } from '../../src/api/objects.ts';
import type { ContainerConfig, SandboxConfig } from '../../src/container/runtime.ts';
import type { ContainerId, SandboxId } from '../../src/container/words.ts';
import type { CriRuntime } from '../../src/cri/runtime.ts';
import { containerConfig, sandboxConfig } from '../fakes/runtimeConfigs.ts';

export interface PodShape {
  readonly image?: string;
  /** True: TERM does nothing, only KILL ends it. */
  readonly ignoresTerm?: boolean;
}

const image1 = 'localhost/busybox:1';

/** What the container runs: quiet, and either polite to TERM or deaf (process 1 without a handler does not get it). */
const script = (shape: PodShape): readonly string[] =>
  shape.ignoresTerm === true ? ['sleep', '2147483647'] : ['sh', '-c', "trap 'exit 0' TERM; sleep 2147483647 & wait"];

/** One container, grace 1 s. JSON is YAML too. */
export const manifest = (name: string, shape: PodShape = {}): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { bench: 'true' } },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [{ name: 'main', image: shape.image ?? image1, command: script(shape) }],
    },
  });

export interface RawPod {
  readonly config: SandboxConfig;
  readonly sandbox: SandboxId;
  readonly container: ContainerId;
}

const rawContainer = (config: SandboxConfig, shape: PodShape, attempt: number): ContainerConfig =>
  containerConfig(config, 'main', {
    image: shape.image ?? image1,
    command: script(shape),
    attempt,
    resources: { cpuShares: 2, oomScoreAdj: 1000 },
  });

/** RunPodSandbox, CreateContainer, StartContainer: the floor of "manifest dropped → running". */
export async function rawStart(runtime: CriRuntime, dir: string, name: string, shape: PodShape = {}): Promise<RawPod> {
  const uid = randomUUID() as PodUid;
  const config = sandboxConfig(name, {
    uid,
    logDirectory: join(dir, `default_${name}_${uid}`),
    cgroupParent: `/kubepods/besteffort/pod${uid}`,
  });
  const sandbox = await runtime.runSandbox(config, '');
  const container = await runtime.createContainer(sandbox, rawContainer(config, shape, 0), config);
  await runtime.startContainer(container);
  return { config, sandbox, container };
}

/** StopContainer by grace, then StopPodSandbox: the floor of "manifest removed → gone". */
export async function rawStop(runtime: CriRuntime, pod: RawPod, graceSeconds: number): Promise<void> {
  // containerd 1.6 fails the call when the container ends just as it is asked ("ttrpc: closed"); stopping the sandbox makes sure
  await runtime.stopContainer(pod.container, graceSeconds).catch(() => {});
  await runtime.stopSandbox(pod.sandbox);
}

/** StopContainer, CreateContainer, StartContainer in the same sandbox: the floor of "edited → replaced". */
export async function rawReplace(runtime: CriRuntime, pod: RawPod, shape: PodShape): Promise<RawPod> {
  await runtime.stopContainer(pod.container, 1).catch(() => runtime.stopContainer(pod.container, 1));
  const container = await runtime.createContainer(pod.sandbox, rawContainer(pod.config, shape, 1), pod.config);
  await runtime.startContainer(container);
  return { ...pod, container };
}
