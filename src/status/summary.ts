// pure
/**
 * NodeSummary: the node in two kibibytes, for lists of many nodes. Counts and alerts come from what was told of pods, objects and conditions,
 * so that it never says another thing than they do; figures of use are handed in. An alert of the node is the type of a condition that is not as
 * it should be; one of an object is `<namespace>/<name>: <reason>` of its sync answer.
 */
import type { NodeSummary } from '../api/messages.ts';
import type { SyncStatus, Unstamped } from '../api/payloads.ts';
import type { ToldPod } from '../api/status.ts';
import { cutText, jsonBytes } from './cut.ts';

export type SummaryBody = Unstamped<NodeSummary>;

/** What is known of the node's use now; what could not be read is absent. */
export interface SummaryUse {
  /** Of all processors together, 0…100. */
  readonly cpuPercent?: number;
  /** Working set of the node. */
  readonly memoryBytes?: number;
  readonly memoryTotalBytes?: number;
  readonly temperatureCelsius?: number;
  /** Since the machine started. */
  readonly diskWrittenBytes?: number;
}

export interface SummaryFacts {
  readonly node: string;
  readonly uptimeSeconds: number;
  readonly pods: readonly ToldPod[];
  readonly sync: readonly SyncStatus[];
  readonly conditions: readonly { readonly type: string; readonly status: 'True' | 'False' | 'Unknown' }[];
  readonly restartsLastHour: number;
  readonly use: SummaryUse;
}

const maxAlerts = 20;
const maxAlertBytes = 96;
/** Whole, with boot and seq, which come when it is told. */
const maxBytes = 2048;
const stampBytes = 64;

export function nodeSummary({ node, uptimeSeconds, pods, sync, conditions, restartsLastHour, use }: SummaryFacts): SummaryBody {
  const all = [...nodeAlerts(conditions), ...objectAlerts(sync)];
  const body = (alerts: readonly string[]): SummaryBody => ({
    apiVersion: 'podsched.dev/v1',
    kind: 'NodeSummary',
    node,
    uptimeSeconds: Math.max(0, Math.floor(uptimeSeconds)),
    pods: { desired: sync.filter(isDesiredPod).length, running: pods.filter(isRunning).length, ready: pods.filter(isReady).length },
    restartsLastHour,
    alerts,
    ...figures(use),
  });
  for (let count = Math.min(all.length, maxAlerts); ; count--) {
    const whole = body(firstAlerts(all, count));
    if (count === 0 || jsonBytes(whole) <= maxBytes - stampBytes) return whole;
  }
}

/** What makes a summary another one than before: what moves by itself is no news. */
export const summaryNews = ({ pods, alerts }: SummaryBody): string => JSON.stringify([pods, alerts]);

/** The node's own first, since they may be why pods are not as they should be. */
function nodeAlerts(conditions: SummaryFacts['conditions']): string[] {
  // Ready is the one that should be True
  return conditions.filter((c) => (c.type === 'Ready' ? c.status !== 'True' : c.status === 'True')).map((c) => c.type);
}

const troubled: ReadonlySet<string> = new Set(['Failed', 'Refused', 'UpdateBlocked', 'RolledBack', 'SourceGone']);
/** Of what waits: a start, an end, a wave that has not come yet; nobody need look. */
const onItsWay: ReadonlySet<string> = new Set([
  'ContainerCreating',
  'ContainersNotReady',
  'PodInitializing',
  'ContainersNotInitialized',
  'WaitingForPredecessor',
  'Rollout',
]);
/** Of what runs. */
const well: ReadonlySet<string> = new Set(['Ready', 'ImageStale', 'Held']);

function objectAlerts(sync: readonly SyncStatus[]): string[] {
  return sync.flatMap(({ object, phase, reason }) => {
    // what goes on is well, and what was written since is not
    const alert =
      reason === 'EditRefused' ||
      troubled.has(phase) ||
      (phase === 'Waiting' && !onItsWay.has(reason)) ||
      (phase === 'Running' && !well.has(reason));
    const kind = object.kind === 'Pod' ? '' : `${object.kind.toLowerCase()}:`;
    return alert ? [cutText(`${kind}${object.namespace}/${object.name}: ${reason}`, maxAlertBytes)] : [];
  });
}

/** So many of them, the last of which counts the rest. */
function firstAlerts(all: readonly string[], count: number): string[] {
  if (all.length <= count) return [...all];
  const shown = all.slice(0, Math.max(0, count - 1));
  return count === 0 ? [] : [...shown, `and ${all.length - shown.length} more`];
}

const isDesiredPod = ({ object, desired, phase }: SyncStatus): boolean =>
  object.kind === 'Pod' && desired !== undefined && phase !== 'Terminating' && phase !== 'Stopped';

const isRunning = ({ status }: ToldPod): boolean => status.phase === 'Running';

const isReady = ({ status }: ToldPod): boolean => status.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;

/** Whole numbers, and a tenth of a percent or a degree: more digits are noise on the wire. */
function figures(use: SummaryUse): SummaryUse {
  const { cpuPercent, memoryBytes, memoryTotalBytes, temperatureCelsius, diskWrittenBytes } = use;
  const tenth = (n: number): number => Math.round(n * 10) / 10;
  return {
    ...(cpuPercent !== undefined && { cpuPercent: Math.max(0, tenth(cpuPercent)) }),
    ...(memoryBytes !== undefined && { memoryBytes: Math.round(memoryBytes) }),
    ...(memoryTotalBytes !== undefined && { memoryTotalBytes: Math.round(memoryTotalBytes) }),
    ...(temperatureCelsius !== undefined && { temperatureCelsius: tenth(temperatureCelsius) }),
    ...(diskWrittenBytes !== undefined && { diskWrittenBytes: Math.round(diskWrittenBytes) }),
  };
}
