// pure
/**
 * A pod in one row: READY, STATUS, RESTARTS as `kubectl get pods` computes them, so that whoever knows kubectl reads them right.
 * STATUS is no field of the pod: it is the first thing that stands in the way, looked for from the phase down to the containers.
 */
import type { ToldPod, V1ContainerStatus } from '../api/status.ts';
import { ageText } from './age.ts';

export interface PodRow {
  readonly namespace: string;
  readonly name: string;
  readonly ready: string;
  readonly status: string;
  readonly restarts: string;
  readonly age: string;
  readonly ip: string;
  readonly node: string;
  readonly source: string;
  readonly revision: string;
}

const isTrue = (pod: ToldPod, type: string): boolean => pod.status.conditions?.some((c) => c.type === type && c.status === 'True') === true;

export function podRow(pod: ToldPod, nowMs: number): PodRow {
  const { metadata, spec, status } = pod;
  const counted = countContainers(pod);
  const last = counted.lastRestart === undefined ? '' : ` (${ageText(counted.lastRestart, nowMs)} ago)`;
  return {
    namespace: metadata.namespace ?? 'default',
    name: metadata.name,
    ready: `${counted.ready}/${counted.total}`,
    status: podStatusText(pod),
    restarts: counted.restarts === 0 ? '0' : `${counted.restarts}${last}`,
    age: ageText(metadata.creationTimestamp ?? status.startTime, nowMs),
    ip: status.podIP ?? '<none>',
    node: spec.nodeName ?? '<none>',
    source: metadata.annotations?.['podsched.dev/source'] ?? '<none>',
    revision: metadata.annotations?.['podsched.dev/revision'] ?? '<none>',
  };
}

const sidecarsOf = (pod: ToldPod): ReadonlySet<string> =>
  new Set(pod.spec.initContainers?.filter((c) => c.restartPolicy === 'Always').map((c) => c.name));

/** `Init:0/2`, `Init:Error` … of the init container that stands in the way; undefined when none does. */
function initText(pod: ToldPod): string | undefined {
  const sidecars = sidecarsOf(pod);
  const total = pod.spec.initContainers?.length ?? 0;
  for (const [i, c] of (pod.status.initContainerStatuses ?? []).entries()) {
    const { terminated, waiting } = c.state;
    if (terminated?.exitCode === 0) continue;
    if (sidecars.has(c.name) && c.started === true) continue;
    if (terminated !== undefined) return `Init:${terminated.reason || `ExitCode:${terminated.exitCode}`}`;
    if (waiting?.reason !== undefined && waiting.reason !== '' && waiting.reason !== 'PodInitializing') return `Init:${waiting.reason}`;
    return `Init:${i}/${total}`;
  }
  return undefined;
}

/** The reason of one container that is not simply running. */
function containerText({ state: { waiting, terminated } }: V1ContainerStatus): string | undefined {
  if (waiting?.reason !== undefined && waiting.reason !== '') return waiting.reason;
  return terminated === undefined ? undefined : terminated.reason || `ExitCode:${terminated.exitCode}`;
}

/** kubectl's STATUS: CrashLoopBackOff, Init:0/1, Completed, Terminating … */
export function podStatusText(pod: ToldPod): string {
  const { status, metadata } = pod;
  const ended = status.phase === 'Succeeded' || status.phase === 'Failed';
  if (metadata.deletionTimestamp !== undefined && !ended) return 'Terminating';
  const init = initText(pod);
  if (init !== undefined && !isTrue(pod, 'Initialized')) return init;
  const containers = status.containerStatuses ?? [];
  // the first container that has something to say
  const said = containers.map(containerText).find((text) => text !== undefined);
  const text = said ?? init ?? (status.reason || status.phase);
  // one of several containers has completed while another one runs
  if (text === 'Completed' && containers.some((c) => c.ready && c.state.running !== undefined)) {
    return isTrue(pod, 'Ready') ? 'Running' : 'NotReady';
  }
  return text;
}

interface Counted {
  readonly ready: number;
  readonly total: number;
  readonly restarts: number;
  readonly lastRestart: string | undefined;
}

/** Sidecars count as containers; restarts of init containers count until the pod is initialized. */
function countContainers(pod: ToldPod): Counted {
  const sidecars = sidecarsOf(pod);
  const inits = pod.status.initContainerStatuses ?? [];
  const initializing = initText(pod) !== undefined && !isTrue(pod, 'Initialized');
  const containers = initializing ? [] : (pod.status.containerStatuses ?? []);
  const counted = initializing ? inits : [...inits.filter((c) => sidecars.has(c.name)), ...containers];
  const readyOnes = [
    ...inits.filter((c) => sidecars.has(c.name) && c.started === true && c.ready),
    ...containers.filter((c) => c.ready && c.state.running !== undefined),
  ];
  const restarts = counted.reduce((sum, c) => sum + c.restartCount, 0);
  const ends = counted.map((c) => c.lastState.terminated?.finishedAt).filter((t) => t !== undefined);
  return {
    ready: readyOnes.length,
    total: pod.spec.containers.length + sidecars.size,
    restarts,
    lastRestart: restarts === 0 ? undefined : ends.sort((a, b) => Date.parse(a) - Date.parse(b)).at(-1),
  };
}
