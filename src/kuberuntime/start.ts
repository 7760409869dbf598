/** Starting one container: back-off, image, config, create, start, and its events. Mirrors kubelet v1.32 startContainer (facts 4.3, 6.1). */
import { containerNamed } from '../api/containers.ts';
import type { Container, EphemeralContainer } from '../api/v1.ts';
import { isAbort } from '../async/abort.ts';
import { goDuration } from '../container/goDuration.ts';
import type { ContainerConfig, RunnableImage } from '../container/runtime.ts';
import type { SyncResult } from '../container/syncResult.ts';
import { annotations, type ContainerId } from '../container/words.ts';
import { describeError } from '../world/log.ts';
import { type ContainerInputs, containerConfig } from './configs.ts';
import type { KubeRuntimeDeps, SyncRun } from './deps.ts';
import { wantsPodIps } from './environment.ts';
import { type EnvironmentSources, environmentSources, noSources, withoutSecrets } from './envObjects.ts';
import { type KillDeps, killContainer } from './kill.ts';
import { podText, restartBackoffKey } from './names.ts';
import { recordOf } from './records.ts';
import { isNameReserved, nameTries, nextAttempt } from './reserved.ts';
import type { ReadySandbox } from './sandbox.ts';
import { nonRootProblem } from './security.ts';

/** Why a container did not start; thrown inside this file only. */
class StartFailure extends Error {
  constructor(
    readonly reason: string,
    message: string,
    readonly waitMs?: number,
  ) {
    super(message);
  }
}

/**
 * Starts it and runs its postStart hook to the end; undefined when the sync was called off meanwhile and nothing can be said of it. A hook
 * goes on then, and the next sync waits for it. Never rejects.
 */
export async function startContainer(
  deps: KubeRuntimeDeps & KillDeps,
  run: SyncRun,
  container: Container | EphemeralContainer,
  sandbox: ReadySandbox,
): Promise<SyncResult | undefined> {
  const target = container.name;
  const waiting = inBackoff(deps, run, target);
  if (waiting !== undefined) return waiting;
  try {
    const spec: Container = { ...container, image: container.image ?? '' };
    const image = await ensureImage(deps, run, spec);
    const { id, config } = await create(deps, run, container, image, sandbox);
    deps.event(run.desired, target, 'Normal', 'Created', `Created container: ${target}`);
    tellSecretInEnv(deps, run, container);
    deps.postStarts.expect(id, container);
    await start(deps, run, target, id).catch((e) => {
      deps.postStarts.forget(id);
      throw e;
    });
    deps.event(run.desired, target, 'Normal', 'Started', `Started container ${target}`);
    const { desired } = run;
    const record = { id, name: target, annotations: config.annotations, sandboxId: sandbox.id };
    const message = 'FailedPostStartHook';
    const kill = () => killContainer(deps, { pod: desired.pod, ref: desired, record, reason: '', message, override: undefined });
    return await deps.postStarts.run(deps, { desired, container, id, sandboxId: sandbox.id }, kill, run.signal);
  } catch (e) {
    if (run.signal.aborted || isAbort(e)) return undefined;
    if (!(e instanceof StartFailure)) throw e;
    const { reason, message, waitMs } = e;
    return { action: 'StartContainer', target, error: { reason, message }, ...(waitMs !== undefined && { waitMs }) };
  }
}

/** Every exit steps the back-off, a clean one too; it counts from the moment this agent saw the exit. */
function inBackoff(deps: KubeRuntimeDeps, run: SyncRun, name: string): SyncResult | undefined {
  const dead = run.status.containers.find((c) => c.name === name && c.state === 'exited');
  if (dead === undefined) return undefined;
  const key = restartBackoffKey(run.desired, name);
  const since = deps.exitSeenAt(dead.id);
  const waitMs = deps.backoff.remainingMs(key, since);
  if (waitMs <= 0) {
    deps.backoff.next(key, since);
    return undefined;
  }
  const pod = podText(run.desired);
  deps.event(run.desired, name, 'Warning', 'BackOff', `Back-off restarting failed container ${name} in pod ${pod}`);
  const message = `back-off ${goDuration(deps.backoff.delayMs(key))} restarting failed container=${name} pod=${pod}`;
  return { action: 'StartContainer', target: name, error: { reason: 'CrashLoopBackOff', message }, waitMs };
}

/** ConfigMaps and Secrets that its environment names, as they are now. */
const sourcesOf = (deps: KubeRuntimeDeps, run: SyncRun, container: Container | EphemeralContainer): EnvironmentSources =>
  deps.objects === undefined ? noSources : environmentSources(deps.objects, run.desired, container);

/** What containerd keeps of a container holds its environment in plain text; said once of a pod, by its first container with a Secret. */
function tellSecretInEnv(deps: KubeRuntimeDeps, run: SyncRun, container: Container | EphemeralContainer): void {
  const { desired, status } = run;
  const names = [...sourcesOf(deps, run, container).secrets.keys()];
  if (names.length === 0) return;
  const { initContainers = [], containers } = desired.pod.spec;
  const first = [...initContainers, ...containers].find((c) => sourcesOf(deps, run, c).secrets.size > 0);
  if (first !== undefined && first.name !== container.name) return;
  const before = recordOf(status, container.name);
  const recorded = before?.annotations[annotations.ourContainerHash] ?? '';
  // a restart of what was told already
  if (before !== undefined && deps.adoption.sameHash(recorded, desired.containerHashes[container.name] ?? '', before.id)) return;
  const text = `the environment takes values from ${names.map((n) => `Secret ${n}`).join(', ')}, and containerd stores them as plain text`;
  deps.event(desired, container.name, 'Normal', 'SecretInEnv', text);
}

/** Tells the failure as the kubelet does and gives it to the caller to throw. */
function failed(
  deps: KubeRuntimeDeps,
  run: SyncRun,
  name: string,
  reason: string,
  text: string,
  shown: string,
  waitMs?: number,
): StartFailure {
  // what the runtime says may repeat the command or the environment; all other words are our own
  const quotes = reason === 'CreateContainerError' || reason === 'RunContainerError';
  const container = quotes ? containerNamed(run.desired.pod.spec, name) : undefined;
  const sources = container === undefined ? noSources : sourcesOf(deps, run, container);
  const message = withoutSecrets(text, sources);
  deps.event(run.desired, name, 'Warning', 'Failed', withoutSecrets(`Error: ${shown}`, sources));
  deps.log.info({ pod: run.desired.name, container: name, reason, message }, 'a container did not start');
  return new StartFailure(reason, message, waitMs);
}

async function ensureImage(deps: KubeRuntimeDeps, run: SyncRun, spec: Container): Promise<RunnableImage> {
  const ensured = await deps.ensureImage(run.desired, spec, run.signal);
  if (!ensured.ok) throw failed(deps, run, spec.name, ensured.reason, ensured.message, ensured.reason, ensured.waitMs);
  const problem = nonRootProblem(run.desired.pod, spec, ensured.image, podText(run.desired));
  if (problem !== undefined) throw failed(deps, run, spec.name, 'CreateContainerConfigError', problem, problem);
  return ensured.image;
}

async function create(
  deps: KubeRuntimeDeps,
  run: SyncRun,
  container: Container | EphemeralContainer,
  image: RunnableImage,
  sandbox: ReadySandbox,
): Promise<{ readonly id: ContainerId; readonly config: ContainerConfig }> {
  const { desired, status } = run;
  const { name } = container;
  const target = 'targetContainerName' in container ? container.targetContainerName : undefined;
  const targetId = target === undefined ? undefined : recordOf(status, target)?.id;
  const record = recordOf(status, name);
  let attempt: number | undefined;
  let config: ContainerConfig;
  const configOf = async (n: number): Promise<ContainerConfig> => {
    const inputs = { ...facts(deps, run, container, sandbox), image, ...(targetId !== undefined && { targetId }) };
    const mounts = (await deps.mounts?.(desired, container, n, sandbox.ips)) ?? [];
    return containerConfig(desired, container, { ...inputs, attempt: n, mounts });
  };
  for (let tries = 1; ; tries++) {
    try {
      if (target && targetId === undefined) throw new Error(`unable to find target container ${target}`);
      await deps.logs.ensure(desired, name);
      attempt ??= record === undefined ? await deps.logs.nextAttempt(desired, name) : record.attempt + 1;
      config = await configOf(attempt);
    } catch (e) {
      throw failed(deps, run, name, 'CreateContainerConfigError', describeError(e), describeError(e));
    }
    try {
      run.acted = true;
      return { id: await deps.runtime.createContainer(sandbox.id, config, sandbox.config), config };
    } catch (e) {
      const free = isNameReserved(e) && tries < nameTries ? await freeAttempt(deps, run, name, attempt) : undefined;
      if (free === undefined) throw failed(deps, run, name, 'CreateContainerError', describeError(e), describeError(e));
      attempt = free;
    }
  }
}

/** What the node and the running sandbox say. */
function facts(
  deps: KubeRuntimeDeps,
  run: SyncRun,
  container: Container | EphemeralContainer,
  sandbox: ReadySandbox,
): Omit<ContainerInputs, 'attempt' | 'image'> {
  const { nodeName, nodeMemoryBytes, nodeCpus, thermalThrottlePaths = [], hugepageSizes = [], hostIps, nodeStorageBytes } = deps.settings;
  const { countsSwap = false } = deps.settings;
  const { seccompDefault, seccompFolder } = deps.settings;
  if (sandbox.ips.length === 0 && !run.desired.pod.spec.hostNetwork && wantsPodIps(container))
    throw new Error('the pod has no address yet');
  return {
    nodeName,
    nodeMemoryBytes,
    thermalThrottlePaths,
    hugepageSizes,
    countsSwap,
    hostIps: hostIps?.() ?? [],
    podIps: sandbox.ips,
    sources: sourcesOf(deps, run, container),
    ...(nodeCpus !== undefined && { nodeCpus }),
    ...(nodeStorageBytes !== undefined && { nodeStorageBytes: nodeStorageBytes() }),
    ...(seccompDefault !== undefined && { seccompDefault }),
    ...(seccompFolder !== undefined && { seccompFolder }),
  };
}

/** Looks again: the next attempt, or undefined when one of that name runs after all (then the next sync decides) or nobody can tell. */
async function freeAttempt(deps: KubeRuntimeDeps, run: SyncRun, name: string, tried: number): Promise<number | undefined> {
  try {
    const listed = (await deps.runtime.listContainers(run.desired.uid)).filter((c) => c.name === name);
    return listed.some((c) => c.state === 'running') ? undefined : nextAttempt(tried, listed);
  } catch (e) {
    deps.log.warn({ pod: run.desired.name, error: describeError(e) }, 'containers could not be listed');
    return undefined;
  }
}

async function start(deps: KubeRuntimeDeps, run: SyncRun, name: string, id: ContainerId): Promise<void> {
  try {
    await deps.runtime.startContainer(id);
    deps.acted(run.desired.uid, id);
  } catch (e) {
    const text = describeError(e);
    // the id would make each repeat of the event another event
    throw failed(deps, run, name, 'RunContainerError', text, text.replaceAll(id, name));
  }
}
