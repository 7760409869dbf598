/** Starting one container: back-off, image, config, create, start, and its events. Mirrors kubelet v1.32 startContainer (facts 4.3, 6.1). */
import type { Container, EphemeralContainer } from '../api/v1.ts';
import { isAbort } from '../async/abort.ts';
import { goDuration } from '../container/goDuration.ts';
import type { ImageInfo, SandboxConfig } from '../container/runtime.ts';
import type { SyncResult } from '../container/syncResult.ts';
import type { ContainerId, SandboxId } from '../container/words.ts';
import { describeError } from '../world/log.ts';
import { type ContainerInputs, containerConfig } from './configs.ts';
import type { KubeRuntimeDeps, SyncRun } from './deps.ts';
import { wantsPodIps } from './environment.ts';
import { podText, restartBackoffKey } from './names.ts';
import { recordOf } from './records.ts';
import { isNameReserved, nameTries, nextAttempt } from './reserved.ts';
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

/** Starts it; undefined when the sync was called off meanwhile and nothing can be said of it. Never rejects. */
export async function startContainer(
  deps: KubeRuntimeDeps,
  run: SyncRun,
  container: Container | EphemeralContainer,
  sandboxId: SandboxId,
  sandboxConfig: SandboxConfig,
): Promise<SyncResult | undefined> {
  const target = container.name;
  const waiting = inBackoff(deps, run, target);
  if (waiting !== undefined) return waiting;
  try {
    const spec: Container = { ...container, image: container.image ?? '' };
    const image = await ensureImage(deps, run, spec);
    const id = await create(deps, run, container, image, sandboxId, sandboxConfig);
    deps.event(run.desired, target, 'Normal', 'Created', `Created container: ${target}`);
    await start(deps, run, target, id);
    deps.event(run.desired, target, 'Normal', 'Started', `Started container ${target}`);
    return { action: 'StartContainer', target };
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
  deps.event(run.desired, name, 'Warning', 'Failed', `Error: ${shown}`);
  deps.log.info({ pod: run.desired.name, container: name, reason, message: text }, 'a container did not start');
  return new StartFailure(reason, text, waitMs);
}

async function ensureImage(deps: KubeRuntimeDeps, run: SyncRun, spec: Container): Promise<ImageInfo> {
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
  image: ImageInfo,
  sandboxId: SandboxId,
  sandboxConfig: SandboxConfig,
): Promise<ContainerId> {
  const { desired, status } = run;
  const { name } = container;
  const target = 'targetContainerName' in container ? container.targetContainerName : undefined;
  const targetId = target === undefined ? undefined : recordOf(status, target)?.id;
  const record = recordOf(status, name);
  let attempt: number;
  let inputs: Omit<ContainerInputs, 'attempt'>;
  try {
    if (target && targetId === undefined) throw new Error(`unable to find target container ${target}`);
    await deps.logs.ensure(desired, name);
    attempt = record === undefined ? await deps.logs.nextAttempt(desired, name) : record.attempt + 1;
    inputs = { ...(await facts(deps, run, container, sandboxId)), image, ...(targetId !== undefined && { targetId }) };
    containerConfig(desired, container, { ...inputs, attempt });
  } catch (e) {
    throw failed(deps, run, name, 'CreateContainerConfigError', describeError(e), describeError(e));
  }
  for (let tries = 1; ; tries++) {
    try {
      run.acted = true;
      return await deps.runtime.createContainer(sandboxId, containerConfig(desired, container, { ...inputs, attempt }), sandboxConfig);
    } catch (e) {
      const free = isNameReserved(e) && tries < nameTries ? await freeAttempt(deps, run, name, attempt) : undefined;
      if (free === undefined) throw failed(deps, run, name, 'CreateContainerError', describeError(e), describeError(e));
      attempt = free;
    }
  }
}

/** What the node and the running sandbox say; the sandbox is asked only by an environment that wants its address. */
async function facts(
  deps: KubeRuntimeDeps,
  run: SyncRun,
  container: Container | EphemeralContainer,
  sandboxId: SandboxId,
): Promise<Omit<ContainerInputs, 'attempt' | 'image'>> {
  const { nodeName, nodeMemoryBytes, nodeCpus, thermalThrottlePaths = [], hostIps, nodeStorageBytes } = deps.settings;
  const { seccompDefault, seccompFolder } = deps.settings;
  const ofHost = hostIps?.() ?? [];
  const podIps = wantsPodIps(container) ? await addresses(deps, run, sandboxId, ofHost) : [];
  return {
    nodeName,
    nodeMemoryBytes,
    thermalThrottlePaths,
    hostIps: ofHost,
    podIps,
    ...(nodeCpus !== undefined && { nodeCpus }),
    ...(nodeStorageBytes !== undefined && { nodeStorageBytes: nodeStorageBytes() }),
    ...(seccompDefault !== undefined && { seccompDefault }),
    ...(seccompFolder !== undefined && { seccompFolder }),
  };
}

async function addresses(deps: KubeRuntimeDeps, run: SyncRun, id: SandboxId, ofHost: readonly string[]): Promise<readonly string[]> {
  if (run.desired.pod.spec.hostNetwork) return ofHost;
  const { network } = await deps.runtime.sandboxStatus(id);
  const ips = network === undefined ? [] : [network.ip, ...network.additionalIps].filter((ip) => ip !== '');
  if (ips.length === 0) throw new Error('the pod has no address yet');
  return ips;
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
