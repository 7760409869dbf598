// pure
/** The init containers' part of computePodActions: one after the other without sidecars (facts 5.4), in order with them (facts 5.5). */
import { isSidecar } from '../api/resources.ts';
import type { Container, Pod } from '../api/v1.ts';
import type { ContainerStatus, RuntimePodStatus } from '../container/words.ts';
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

export interface InitDecision {
  /** App containers may start. */
  readonly done: boolean;
  readonly killPod: boolean;
  /** Indexes in spec.initContainers, in start order. */
  readonly start: readonly number[];
  readonly kill: readonly ContainerToKill[];
}

/** An init container has failed: killed for memory whatever its exit code, a non-zero exit, or nobody knows. */
const isInitFailed = (c: ContainerStatus): boolean =>
  c.reason === 'OOMKilled' || (c.state === 'exited' && c.exitCode !== 0) || c.state === 'unknown';

const killUnknown = (record: ContainerStatus): ContainerToKill => ({
  id: record.id,
  name: record.name,
  reason: 'Unknown',
  message: 'Init container is in "unknown" state, try killing it before restart',
});

/** Without sidecars: at most one init container is started. */
export function plainInitDecision(pod: Pod, status: RuntimePodStatus): InitDecision {
  const containers = pod.spec.initContainers ?? [];
  const wait: InitDecision = { done: false, killPod: false, start: [], kill: [] };
  const done: InitDecision = { ...wait, done: true };
  if (containers.length === 0) return done;
  // A running app container proves that init was over, whatever became of its records.
  if (pod.spec.containers.some((c) => recordOf(status, c.name)?.state === 'running')) return done;

  const records = containers.map((c) => recordOf(status, c.name));
  for (let i = records.length - 1; i >= 0; i--) {
    const record = records[i];
    if (record === undefined || !isInitFailed(record)) continue;
    if (pod.spec.restartPolicy === 'Never') return { ...wait, killPod: true };
    return { ...wait, start: [i], kill: record.state === 'unknown' ? [killUnknown(record)] : [] };
  }
  for (let i = records.length - 1; i >= 0; i--) {
    const state = records[i]?.state;
    if (state === 'running') return wait;
    if (state === 'exited') return i === records.length - 1 ? done : { ...wait, start: [i + 1] };
  }
  return { ...wait, start: [0] };
}

/** With at least one sidecar: walked from the last to the first, so that what runs proves what came before it. */
export function sidecarInitDecision(pod: Pod, status: RuntimePodStatus, o: ActionInputs): InitDecision {
  const containers = pod.spec.initContainers ?? [];
  const restartOnFailure = pod.spec.restartPolicy !== 'Never';
  const start: number[] = [];
  const kill: ContainerToKill[] = [];
  // Exited app containers prove nothing: after a reboot everything is exited.
  let done = pod.spec.containers.some((c) => {
    const state = recordOf(status, c.name)?.state;
    return state === 'created' || state === 'running';
  });
  let before = done;
  const endPod: InitDecision = { done: false, killPod: true, start: [], kill: [] };
  const succeeded = (i: number): void => {
    if (i === containers.length - 1) done = true;
    else start.push(i + 1);
  };

  for (let i = containers.length - 1; i >= 0; i--) {
    const container = containers[i];
    if (container === undefined) continue;
    const record = recordOf(status, container.name);
    const sidecar = isSidecar(container);
    if (record === undefined) {
      if (before && sidecar) start.push(i); // its record was removed
      continue;
    }
    if (before && !sidecar) continue; // it has done its work long ago
    switch (record.state) {
      case 'created':
        start.push(i);
        break;
      case 'running': {
        if (!sidecar) break;
        const startup = container.startupProbe === undefined ? 'success' : o.startup(record.id);
        if (startup === 'failure') {
          kill.push(killRunning(container, record, 'StartupProbe', ' failed startup probe'));
          start.push(i);
        } else if (o.restartAsked?.(record) === true) {
          kill.push({ ...killRunning(container, record, '', restartAskedText), asked: true });
          start.push(i);
          break;
        }
        if (startup !== 'success') break;
        if (!done && (i === containers.length - 1 || !before)) succeeded(i);
        const why = whyRestart(container, record, o);
        if (why === undefined) break;
        kill.push(killRunning(container, record, why.reason, why.text));
        start.push(i);
        break;
      }
      case 'exited':
        if (sidecar) start.push(i);
        else if (!isInitFailed(record)) succeeded(i);
        else if (!restartOnFailure) return endPod;
        else start.push(i);
        break;
      case 'unknown':
        if (!sidecar && !restartOnFailure) return endPod;
        kill.push(killUnknown(record));
        start.push(i);
        break;
    }
    before = true;
  }
  if (!before) start.push(0);
  return { done, killPod: false, start: start.reverse(), kill };
}

function whyRestart(container: Container, record: ContainerStatus, o: ActionInputs): { reason: KillReason; text: string } | undefined {
  if (definitionChanged(record, o)) return { reason: '', text: ' definition changed' };
  if (o.configChanged?.(record) === true) return { reason: '', text: configChangedText };
  if (o.deviceBack?.(record) === true) return { reason: '', text: deviceBackText };
  if (container.livenessProbe !== undefined && o.liveness(record.id) === 'failure')
    return { reason: 'LivenessProbe', text: ' failed liveness probe' };
  return undefined;
}

const killRunning = (container: Container, record: ContainerStatus, reason: KillReason, text: string): ContainerToKill => ({
  id: record.id,
  name: container.name,
  reason,
  message: `Init container ${container.name}${text}`,
});
