// pure
/**
 * What must be killed, made and started to bring a pod from what the runtime shows to what the manifest says. Mirrors kubelet v1.32
 * computePodActions (kuberuntime_manager.go); its 104 known situations are test/conformance/compute-pod-actions.json.
 * It decides and does nothing. Records come newest first; the record of a name is the first match.
 */
import { isSidecar } from '../api/resources.ts';
import type { Container, Pod } from '../api/v1.ts';
import type { ContainerStatus, RuntimePodStatus, SandboxId } from '../container/words.ts';
import { type InitDecision, plainInitDecision, sidecarInitDecision } from './initActions.ts';
import {
  type ActionInputs,
  type ContainerToKill,
  configChangedText,
  definitionChanged,
  deviceBackText,
  type KillReason,
  recordOf,
  restartAskedText,
} from './records.ts';

export interface PodActions {
  /** Stop all running containers and every sandbox; it comes before everything else. */
  readonly killPod: boolean;
  readonly createSandbox: boolean;
  /** The sandbox to start in; when one is made anew, the one it replaces. */
  readonly sandboxId: SandboxId | undefined;
  /** Of the sandbox to be made, else of the one that is. */
  readonly attempt: number;
  /** Indexes in spec.initContainers, in start order. */
  readonly startInit: readonly number[];
  /** Indexes in spec.containers. */
  readonly startContainers: readonly number[];
  /** Indexes in spec.ephemeralContainers. */
  readonly startEphemeral: readonly number[];
  readonly killContainers: readonly ContainerToKill[];
}

/** Facts 5.2: whether the pod needs a new sandbox, its attempt, and the sandbox that is handed on. */
function sandboxDecision(pod: Pod, status: RuntimePodStatus): { changed: boolean; attempt: number; id: SandboxId | undefined } {
  const newest = status.sandboxes[0];
  if (newest === undefined) return { changed: true, attempt: 0, id: undefined };
  const attempt = Math.max(...status.sandboxes.map((s) => s.attempt)) + 1;
  const ready = status.sandboxes.filter((s) => s.state === 'ready');
  if (ready.length > 1 || newest.state !== 'ready') return { changed: true, attempt, id: newest.id };
  const hostNetwork = pod.spec.hostNetwork === true;
  if ((newest.networkMode === 'NODE') !== hostNetwork) return { changed: true, attempt, id: undefined };
  if (!hostNetwork && newest.network !== undefined && newest.network.ip === '') return { changed: true, attempt, id: newest.id };
  return { changed: false, attempt: newest.attempt, id: newest.id };
}

/** The init containers' part: facts 5.4 without sidecars, 5.5 with at least one. */
function initDecision(pod: Pod, status: RuntimePodStatus, o: ActionInputs): InitDecision {
  return pod.spec.initContainers?.some(isSidecar) ? sidecarInitDecision(pod, status, o) : plainInitDecision(pod, status);
}

/** Whether a container that does not run is started (facts 5.6). */
function shouldStart(pod: Pod, record: ContainerStatus | undefined, o: ActionInputs): boolean {
  if (o.deleting) return false;
  if (record === undefined || record.state === 'created' || record.state === 'unknown') return true;
  if (o.restartAsked?.(record) === true) return true;
  if (pod.spec.restartPolicy === 'Never') return false;
  return !(pod.spec.restartPolicy === 'OnFailure' && record.exitCode === 0);
}

/** One app container: nothing ('keep' or 'leave'), or what to do with it. */
function appDecision(
  pod: Pod,
  container: Container,
  record: ContainerStatus | undefined,
  o: ActionInputs,
): { keep: boolean; start: boolean; kill?: ContainerToKill } {
  if (record === undefined || record.state !== 'running') {
    const start = shouldStart(pod, record, o);
    if (!start || record?.state !== 'unknown') return { keep: false, start };
    const message = 'Container is in "unknown" state, try killing it before restart';
    return { keep: false, start, kill: { id: record.id, name: container.name, reason: 'Unknown', message } };
  }
  let why: { reason: KillReason; text: string };
  let start = pod.spec.restartPolicy !== 'Never';
  if (definitionChanged(record, o)) {
    why = { reason: '', text: ' definition changed' };
    start = true;
  } else if (o.configChanged?.(record) === true) {
    why = { reason: '', text: configChangedText };
    start = true;
  } else if (o.deviceBack?.(record) === true) {
    why = { reason: '', text: deviceBackText };
    start = true;
  } else if (o.restartAsked?.(record) === true) {
    const message = `Container ${container.name}${restartAskedText}, will be restarted`;
    return { keep: false, start: true, kill: { id: record.id, name: container.name, reason: '', message, asked: true } };
  } else if (o.liveness(record.id) === 'failure') why = { reason: 'LivenessProbe', text: ' failed liveness probe' };
  else if (o.startup(record.id) === 'failure') why = { reason: 'StartupProbe', text: ' failed startup probe' };
  else return { keep: true, start: false };
  const message = `Container ${container.name}${why.text}${start ? ', will be restarted' : ''}`;
  return { keep: false, start, kill: { id: record.id, name: container.name, reason: why.reason, message } };
}

/**
 * The decision. `pod` with its defaults, `status` as the cache has it.
 * With `killPod`, `killContainers` may be filled too; killing the pod then covers them.
 */
export function computePodActions(pod: Pod, status: RuntimePodStatus, o: ActionInputs): PodActions {
  const sandbox = sandboxDecision(pod, status);
  const nothing = { startInit: [], startContainers: [], startEphemeral: [], killContainers: [] };
  const base = { ...nothing, killPod: false, createSandbox: false, sandboxId: sandbox.id, attempt: sandbox.attempt };
  const init = initDecision(pod, status, o);

  if (sandbox.changed) {
    const onlyKill: PodActions = { ...base, killPod: true };
    // A Never pod that has begun is not begun again in a new sandbox.
    if (pod.spec.restartPolicy === 'Never' && sandbox.attempt !== 0 && status.containers.length > 0) return onlyKill;
    const succeeded = (c: Container) => {
      const record = recordOf(status, c.name);
      return pod.spec.restartPolicy === 'OnFailure' && record?.state === 'exited' && record.exitCode === 0;
    };
    const candidates = pod.spec.containers.flatMap((c, i) => (succeeded(c) ? [] : [i]));
    if (candidates.length === 0 && initialisedBefore(pod, status, init)) return onlyKill;
    const make: PodActions = { ...onlyKill, createSandbox: true };
    return (pod.spec.initContainers ?? []).length > 0 ? { ...make, startInit: [0] } : { ...make, startContainers: candidates };
  }

  const startEphemeral = (pod.spec.ephemeralContainers ?? []).flatMap((c, i) => (recordOf(status, c.name) === undefined ? [i] : []));
  const begun: PodActions = { ...base, killPod: init.killPod, startInit: init.start, startEphemeral, killContainers: init.kill };
  if (!init.done) return begun;

  const apps = pod.spec.containers.map((c) => appDecision(pod, c, recordOf(status, c.name), o));
  const startContainers = apps.flatMap((a, i) => (a.start ? [i] : []));
  const killContainers = [...init.kill, ...apps.flatMap((a) => (a.kill === undefined ? [] : [a.kill]))];
  // Nothing runs on and nothing will: the pod is over, and sidecars do not keep it.
  if (startContainers.length === 0 && !apps.some((a) => a.keep)) return { ...begun, killPod: true, startInit: [], killContainers };
  return { ...begun, startContainers, killContainers };
}

/** With a dead sandbox every record is from before: sidecars tell nothing then, so any trace of an app container counts. */
function initialisedBefore(pod: Pod, status: RuntimePodStatus, init: InitDecision): boolean {
  if (!pod.spec.initContainers?.some(isSidecar)) return init.done;
  return pod.spec.containers.some((c) => {
    const state = recordOf(status, c.name)?.state;
    return state === 'created' || state === 'running' || state === 'exited';
  });
}
