// pure
/**
 * The container statuses of a pod from what the runtime shows and what was told before. Mirrors kubelet v1.32 kubelet_pods.go
 * convertToAPIContainerStatuses (facts 9.4), with the newest record by attempt, never by time.
 */
import type { ContainerState, ContainerStateTerminated, V1ContainerStatus } from '../api/status.ts';
import type { RestartPolicy } from '../api/v1.ts';
import type { ProbeView } from '../container/probes.ts';
import { type ContainerStatus, newestFirst } from '../container/words.ts';
import type { WallTime } from '../world/clock.ts';
import { toRfc3339 } from '../world/rfc3339.ts';

export interface Reason {
  readonly reason: string;
  readonly message: string;
}

export interface ContainerListInputs {
  readonly list: 'app' | 'init' | 'ephemeral';
  /** As in the manifest. */
  readonly wanted: readonly {
    readonly name: string;
    readonly image: string;
    readonly sidecar: boolean;
    readonly volumeMounts?: V1ContainerStatus['volumeMounts'];
  }[];
  /** All records of the pod, in any order. */
  readonly records: readonly ContainerStatus[];
  readonly old: readonly V1ContainerStatus[] | undefined;
  readonly restartPolicy: RestartPolicy;
  readonly hasInit: boolean;
  /** Why a container could not be started the last time, by container name. */
  readonly reasons: ReadonlyMap<string, Reason>;
  /** The pod is being ended: nothing starts again. */
  readonly deleting: boolean;
  readonly runtimeName: string;
  readonly now: WallTime;
  readonly probes: ProbeView | undefined;
}

const lost = (message: string): ContainerStateTerminated => ({ exitCode: 137, reason: 'ContainerStatusUnknown', message });
const lostWhileRunning = 'the container could not be found in the runtime; it was running when last seen';

export function containerStatuses(inputs: ContainerListInputs): V1ContainerStatus[] {
  const old = new Map((inputs.old ?? []).map((s) => [s.name, s]));
  const statuses = inputs.wanted.map((container) => {
    const records = inputs.records.filter((r) => r.name === container.name).sort(newestFirst);
    const before = old.get(container.name);
    const status = withReason(fromRecords(container, records, before, inputs), container, records[0], inputs);
    const { volumeMounts } = container;
    return { ...withProbes(status, container.sidecar, records[0], inputs), ...(volumeMounts && { volumeMounts }) };
  });
  // as the kubelet shows them: by name, but init containers as they run
  return inputs.list === 'init' ? statuses : statuses.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

type Wanted = ContainerListInputs['wanted'][number];

function fromRecords(
  container: Wanted,
  [newest, previous]: readonly ContainerStatus[],
  before: V1ContainerStatus | undefined,
  inputs: ContainerListInputs,
): V1ContainerStatus {
  if (newest === undefined) return withoutRecord(container, before, inputs);
  const wasLost = newest.state === 'unknown' && before?.state.running !== undefined;
  return {
    name: container.name,
    state: wasLost ? { terminated: lost('the runtime no longer knows the state of this container') } : toState(newest, before, inputs),
    lastState: previous === undefined ? {} : toState(previous, before, inputs),
    ready: false,
    restartCount: wasLost ? before.restartCount + 1 : newest.attempt,
    image: newest.image,
    imageID: newest.imageRef,
    containerID: `${inputs.runtimeName}://${newest.id}`,
  };
}

function withoutRecord(container: Wanted, before: V1ContainerStatus | undefined, inputs: ContainerListInputs): V1ContainerStatus {
  if (before?.state.terminated) return before;
  const waiting: V1ContainerStatus = {
    name: container.name,
    state: { waiting: { reason: inputs.hasInit ? 'PodInitializing' : 'ContainerCreating' } },
    lastState: before?.lastState ?? {},
    ready: false,
    restartCount: before?.restartCount ?? 0,
    image: container.image,
    imageID: '',
  };
  if (before?.state.running === undefined || before.lastState.terminated) return waiting;
  return { ...waiting, lastState: { terminated: lost(lostWhileRunning) }, restartCount: before.restartCount + (inputs.deleting ? 0 : 1) };
}

/** What was told of this very container before, whether it is the current or the last one now. */
function toldBefore(
  id: string,
  before: V1ContainerStatus | undefined,
): { startedAt?: string | undefined; finishedAt?: string | undefined; reason?: string; message?: string } {
  const ended = [before?.state.terminated, before?.lastState.terminated].find((t) => t?.containerID === id);
  if (ended) return ended;
  return before?.containerID === id && before.state.running ? before.state.running : {};
}

function toState(
  record: ContainerStatus,
  before: V1ContainerStatus | undefined,
  { now, runtimeName }: ContainerListInputs,
): ContainerState {
  const containerID = `${runtimeName}://${record.id}`;
  const told = toldBefore(containerID, before);
  // A Pi's clock may be behind its own past: what lies in the future counts as now, and once told it stays.
  const time = (t: WallTime | undefined, toldTime: string | undefined): string | undefined =>
    toldTime ?? (t === undefined ? undefined : toRfc3339(Math.min(t, now) as WallTime));
  const startedAt = time(record.startedAt, told.startedAt);
  switch (record.state) {
    case 'running':
      return { running: { startedAt: startedAt ?? toRfc3339(Math.min(record.createdAt, now) as WallTime) } };
    case 'created':
    case 'unknown':
      return { waiting: {} };
    case 'exited': {
      const finishedAt = time(record.finishedAt, told.finishedAt);
      // only the agent that saw the event knows of a kill for memory; the file of the last words goes with the pod's folder, and who reads
      // them anew then may find only the log. What an ended container said does not change: once told it stays.
      const reason = told.reason === 'OOMKilled' ? told.reason : record.reason;
      const message = told.message ?? record.message;
      return {
        terminated: {
          exitCode: record.exitCode,
          ...(reason !== '' && { reason }),
          ...(message !== '' && { message }),
          ...(startedAt !== undefined && { startedAt }),
          ...(finishedAt !== undefined && { finishedAt }),
          containerID,
        },
      };
    }
  }
}

/** Would the next sync start it (facts 5.6)? Sidecars come back whatever the pod's policy says. */
function shouldStart(
  container: Wanted,
  newest: ContainerStatus | undefined,
  { list, restartPolicy, deleting }: ContainerListInputs,
): boolean {
  if (newest === undefined) return true;
  // an ephemeral container is started once
  if (list === 'ephemeral' || deleting || newest.state === 'running') return false;
  if (newest.state !== 'exited' || container.sidecar) return true;
  if (list === 'init' && newest.exitCode === 0) return false;
  return restartPolicy === 'Always' || (restartPolicy === 'OnFailure' && newest.exitCode !== 0);
}

function withReason(
  status: V1ContainerStatus,
  container: Wanted,
  newest: ContainerStatus | undefined,
  inputs: ContainerListInputs,
): V1ContainerStatus {
  const why = inputs.reasons.get(container.name);
  if (why === undefined || !shouldStart(container, newest, inputs)) return status;
  return {
    ...status,
    state: { waiting: { reason: why.reason, ...(why.message !== '' && { message: why.message }) } },
    lastState: status.state.terminated ? { terminated: status.state.terminated } : status.lastState,
  };
}

/** `started` and `ready` (facts 8.3). Ephemeral containers have neither. */
function withProbes(
  status: V1ContainerStatus,
  sidecar: boolean,
  newest: ContainerStatus | undefined,
  { list, probes }: ContainerListInputs,
): V1ContainerStatus {
  if (list === 'ephemeral') return { ...status, ready: false };
  const running = status.state.running !== undefined;
  const started = running && (probes?.started(status.name, newest?.id) ?? true);
  const plainInit = list === 'init' && !sidecar;
  const ready = plainInit ? status.state.terminated?.exitCode === 0 : started && (probes?.ready(status.name, newest?.id) ?? true);
  return { ...status, ready, started };
}
