/** Starting one container: back-off, image, config, create, start, and its events. Mirrors kubelet v1.32 startContainer (facts 4.3, 6.1). */
import { containerNamed } from '../api/containers.ts';
import type { Container, EphemeralContainer } from '../api/v1.ts';
import { isAbort } from '../async/abort.ts';
import { goDuration } from '../container/goDuration.ts';
import { HeldBack } from '../container/heldBack.ts';
import type { ContainerConfig, Mount, RunnableImage } from '../container/runtime.ts';
import type { SyncResult } from '../container/syncResult.ts';
import { annotations, type ContainerId } from '../container/words.ts';
import { describeError } from '../world/log.ts';
import { type ContainerInputs, containerConfig } from './configs.ts';
import type { KubeRuntimeDeps, MountInputs, SyncRun } from './deps.ts';
import { containerEnvironment, wantsPodIps } from './environment.ts';
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
    /** It waits for something of the node, so that this was no try: the back-off stays as it was. */
    readonly held = false,
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
  const asked = deps.restarts?.isAsked(run.desired.uid, recordOf(run.status, target)) === true;
  const waiting = asked ? undefined : inBackoff(deps, run, target);
  if (waiting !== undefined) return waiting;
  let tried = false;
  const isTried = (): void => {
    // what a person restarts has not crashed
    if (!tried && asked) deps.backoff.delete(restartBackoffKey(run.desired, target));
    else if (!tried) stepBackoff(deps, run, target);
    tried = true;
  };
  try {
    const spec: Container = { ...container, image: container.image ?? '' };
    await repairImage(deps, run, spec);
    const image = await ensureImage(deps, run, spec);
    const { id, config } = await create(deps, run, container, image, sandbox);
    isTried();
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
    if (!(e instanceof StartFailure && e.held)) isTried();
    if (run.signal.aborted || isAbort(e)) return undefined;
    if (!(e instanceof StartFailure)) throw e;
    const { reason, message, waitMs } = e;
    return { action: 'StartContainer', target, error: { reason, message }, ...(waitMs !== undefined && { waitMs }) };
  }
}

const deadOf = (run: SyncRun, name: string) => run.status.containers.find((c) => c.name === name && c.state === 'exited');

/** Every exit steps the back-off, a clean one too; it counts from the moment this agent saw the exit. */
function stepBackoff(deps: KubeRuntimeDeps, run: SyncRun, name: string): void {
  const dead = deadOf(run, name);
  if (dead !== undefined) deps.backoff.next(restartBackoffKey(run.desired, name), deps.exitSeenAt(dead.id));
}

function inBackoff(deps: KubeRuntimeDeps, run: SyncRun, name: string): SyncResult | undefined {
  const dead = deadOf(run, name);
  if (dead === undefined) return undefined;
  const key = restartBackoffKey(run.desired, name);
  const since = deps.exitSeenAt(dead.id);
  const waitMs = deps.backoff.remainingMs(key, since);
  if (waitMs <= 0) return undefined;
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
  held?: boolean,
): StartFailure {
  // what the runtime says may repeat the command or the environment; all other words are our own
  const quotes = reason === 'CreateContainerError' || reason === 'RunContainerError';
  const container = quotes ? containerNamed(run.desired.pod.spec, name) : undefined;
  const sources = container === undefined ? noSources : sourcesOf(deps, run, container);
  const message = withoutSecrets(text, sources);
  deps.event(run.desired, name, 'Warning', 'Failed', withoutSecrets(`Error: ${shown}`, sources));
  deps.log.info({ pod: run.desired.name, container: name, reason, message }, 'a container did not start');
  return new StartFailure(reason, message, waitMs, held);
}

/** Before the image is used again: how its last container ended may show that it is damaged. */
async function repairImage({ repairImage }: KubeRuntimeDeps, run: SyncRun, spec: Container): Promise<void> {
  const dead = recordOf(run.status, spec.name);
  if (dead?.state !== 'exited' || repairImage === undefined) return;
  if (await repairImage(run.desired, spec, dead, run.signal)) run.acted = true;
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
    // before the mounts: a change of a ConfigMap or Secret in between is seen as one then
    const annotations = (await deps.restartOnChange?.annotationsFor(desired, container)) ?? {};
    const inputs = { ...facts(deps, run, container, sandbox), annotations, image, ...(targetId !== undefined && { targetId }) };
    const env = containerEnvironment(desired.pod, { ...container, image: container.image ?? '' }, inputs);
    const mounts = await mountsOf(deps, run, container, n, sandbox, env);
    const given = deps.devices?.(desired, container, image);
    // last, so that nothing slow lies between the choice of CPUs and the container
    const cpusetCpus = await deps.cpus?.cpusFor(desired, name);
    const node = { ...(given && { given }), ...(cpusetCpus !== undefined && { cpusetCpus }) };
    return containerConfig(desired, container, { ...inputs, ...node, attempt: n, mounts, env });
  };
  for (let tries = 1; ; tries++) {
    try {
      if (target && targetId === undefined) throw new Error(`unable to find target container ${target}`);
      await deps.logs.ensure(desired, name);
      attempt ??= record === undefined ? await deps.logs.nextAttempt(desired, name) : record.attempt + 1;
      config = await configOf(attempt);
    } catch (e) {
      if (run.signal.aborted || isAbort(e)) throw e;
      if (e instanceof HeldBack) throw failed(deps, run, name, e.reason, e.message, e.message, e.waitMs, true);
      throw failed(deps, run, name, 'CreateContainerConfigError', describeError(e), describeError(e));
    }
    try {
      run.acted = true;
      const id = await deps.runtime.createContainer(sandbox.id, config, sandbox.config);
      deps.cpus?.made(desired.uid, name, id, config.resources.cpusetCpus);
      return { id, config };
    } catch (e) {
      const free = isNameReserved(e) && tries < nameTries ? await freeAttempt(deps, run, name, attempt) : undefined;
      if (free === undefined) throw failed(deps, run, name, 'CreateContainerError', describeError(e), describeError(e));
      attempt = free;
    }
  }
}

/** Rejects with why it cannot have them; a path that was made of values of Secrets does not show them. */
async function mountsOf(
  deps: KubeRuntimeDeps,
  run: SyncRun,
  container: Container | EphemeralContainer,
  attempt: number,
  { ips }: ReadySandbox,
  env: ReadonlyMap<string, string>,
): Promise<readonly Mount[]> {
  const { name } = container;
  const inputs: MountInputs = {
    env: (key) => env.get(key),
    ensureImage: ({ reference = '', pullPolicy }) =>
      deps.ensureImage(run.desired, { name, image: reference, ...(pullPolicy && { imagePullPolicy: pullPolicy }) }, run.signal),
  };
  try {
    return (await deps.mounts?.(run.desired, container, attempt, ips, inputs)) ?? [];
  } catch (e) {
    const quotes = container.volumeMounts?.some((m) => m.subPathExpr) === true && !(e instanceof HeldBack) && !isAbort(e);
    throw quotes ? new Error(withoutSecrets(describeError(e), sourcesOf(deps, run, container))) : e;
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
  const { countsSwap = false, cgroups } = deps.settings;
  const { seccompDefault, seccompFolder } = deps.settings;
  if (sandbox.ips.length === 0 && !run.desired.pod.spec.hostNetwork && wantsPodIps(container))
    throw new Error('the pod has no address yet');
  return {
    nodeName,
    nodeMemoryBytes,
    thermalThrottlePaths,
    hugepageSizes,
    countsSwap,
    ...(cgroups && { cgroups }),
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
    deps.cpus?.started(id);
    deps.acted(run.desired.uid, id);
  } catch (e) {
    const text = describeError(e);
    // the id would make each repeat of the event another event
    throw failed(deps, run, name, 'RunContainerError', text, text.replaceAll(id, name));
  }
}
