/** Builders of this room's tests: a desired pod, the runtime's words for it, statuses. */
import type { DesiredPod } from '../../src/api/desired.ts';
import type { KeyText, PodUid } from '../../src/api/objects.ts';
import type { PodSpec } from '../../src/api/v1.ts';
import type {
  ContainerId,
  ContainerState,
  ContainerStatus,
  RuntimePodStatus,
  SandboxId,
  SandboxStatus,
} from '../../src/container/words.ts';
import { generatePodStatus, type StatusInputs } from '../../src/status/generate.ts';
import type { SyncSource, SyncView } from '../../src/status/sync.ts';
import type { WallTime } from '../../src/world/clock.ts';

export const start = Date.parse('2026-01-01T00:00:00Z');

export function desiredPod(
  spec: PodSpec,
  o: { name?: string; uid?: string; labels?: Record<string, string>; annotations?: Record<string, string> } = {},
): DesiredPod {
  const name = o.name ?? 'web';
  const uid = (o.uid ?? 'uid-1') as PodUid;
  return {
    uid,
    key: `Pod/default/${name}` as KeyText,
    name,
    namespace: 'default',
    source: 'file:web.yaml',
    revision: 'abcdef012345',
    pod: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name,
        namespace: 'default',
        uid,
        ...(o.labels && { labels: o.labels }),
        ...(o.annotations && { annotations: o.annotations }),
      },
      spec,
    },
    podHash: '1:p',
    containerHashes: {},
    workHash: 'w',
    firstSeen: '2026-01-01T00:00:00Z',
  };
}

/** One container `c`, always restarted. */
export const simple = (spec: Partial<PodSpec> = {}): PodSpec => ({
  restartPolicy: 'Always',
  nodeName: 'pi-07',
  containers: [{ name: 'c', image: 'busybox' }],
  ...spec,
});

export const sandbox = (o: Partial<SandboxStatus> = {}): SandboxStatus => ({
  id: 'sandbox-0' as SandboxId,
  name: 'web',
  namespace: 'default',
  uid: 'uid-1' as PodUid,
  attempt: 0,
  state: 'ready',
  createdAt: start as WallTime,
  labels: {},
  annotations: {},
  networkMode: 'POD',
  network: { ip: '10.0.0.5', additionalIps: [] },
  ...o,
});

export function record(name: string, state: ContainerState, o: Partial<ContainerStatus> = {}): ContainerStatus {
  const attempt = o.attempt ?? 0;
  return {
    id: `${name}-${attempt}` as ContainerId,
    sandboxId: 'sandbox-0' as SandboxId,
    name,
    attempt,
    image: 'busybox',
    imageRef: 'sha256:1',
    state,
    createdAt: (start + attempt * 1000) as WallTime,
    labels: {},
    annotations: {},
    ...(state !== 'created' && { startedAt: (start + attempt * 1000) as WallTime }),
    ...(state === 'exited' && { finishedAt: (start + attempt * 1000 + 500) as WallTime }),
    exitCode: 0,
    reason: state === 'exited' ? ((o.exitCode ?? 0) === 0 ? 'Completed' : 'Error') : '',
    message: '',
    logPath: '',
    mounts: [],
    ...o,
  };
}

export const runtimePod = (
  containers: readonly ContainerStatus[],
  sandboxes: readonly SandboxStatus[] = [sandbox()],
  ips: readonly string[] = ['10.0.0.5'],
): RuntimePodStatus => ({ uid: 'uid-1' as PodUid, name: 'web', namespace: 'default', ips, sandboxes, containers });

export const generate = (desired: DesiredPod, runtime: RuntimePodStatus, o: Partial<StatusInputs> = {}) =>
  generatePodStatus({
    desired,
    runtime,
    reasons: new Map(),
    now: '2026-01-01T01:00:00Z',
    terminal: false,
    hostIps: ['192.168.1.7'],
    runtimeName: 'containerd',
    ...o,
  });

/** What one file says of the pod. */
export const source = (o: Partial<SyncSource> = {}): SyncSource => ({
  source: 'file:web.yaml',
  revision: 'r1',
  phase: 'Accepted',
  reason: 'Accepted',
  message: '',
  problems: [],
  warnings: [],
  ...o,
});

/** That file is the only one. */
export const view = (o: Partial<SyncView> = {}): SyncView => ({
  kind: 'Pod',
  namespace: 'default',
  name: 'web',
  winner: { source: 'file:web.yaml', revision: 'r1' },
  sources: [source()],
  ...o,
});
