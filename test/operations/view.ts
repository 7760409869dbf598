/** Pods, answers and a whole view, as the agent gives them. */
import type { FileStatus, SyncStatus } from '../../src/api/payloads.ts';
import type { PodStatus, ToldPod, V1ContainerStatus, V1Event } from '../../src/api/status.ts';
import type { Container, ObjectMeta, PodSpec } from '../../src/api/v1.ts';
import type { AgentView } from '../../src/operations/agentView.ts';

export const nowMs = Date.parse('2026-01-01T01:00:00Z');

export const cs = (name: string, o: Partial<V1ContainerStatus> = {}): V1ContainerStatus => ({
  name,
  state: {},
  lastState: {},
  ready: false,
  restartCount: 0,
  image: 'img',
  imageID: '',
  ...o,
});
export const running = { running: { startedAt: '2026-01-01T00:59:00Z' } };
export const ended = (exitCode: number, reason?: string) => ({
  terminated: { exitCode, ...(reason !== undefined && { reason }), finishedAt: '2026-01-01T00:55:00Z' },
});
export const waiting = (reason: string, message?: string) => ({ waiting: { reason, ...(message !== undefined && { message }) } });

export interface PodParts {
  readonly metadata?: Partial<ObjectMeta>;
  readonly spec?: Partial<PodSpec>;
  readonly status?: Partial<PodStatus>;
}

export function told(name: string, parts: PodParts = {}): ToldPod {
  const statuses = parts.status?.containerStatuses ?? [cs('app', { state: running, ready: true, started: true })];
  const containers: Container[] = statuses.map((s) => ({ name: s.name, image: s.image }));
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${name}`,
      creationTimestamp: '2026-01-01T00:00:00Z',
      annotations: { 'podsched.dev/source': `file:${name}.yaml`, 'podsched.dev/revision': 'abc123' },
      ...parts.metadata,
    },
    spec: { containers, nodeName: 'pi-07', ...parts.spec },
    status: { phase: 'Running', podIP: '10.88.0.5', containerStatuses: statuses, ...parts.status },
  };
}

export const ready = { conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:59:00Z' }] } as const;

export function sync(name: string, o: Partial<SyncStatus> = {}): SyncStatus {
  const source = `file:${name}.yaml`;
  return {
    apiVersion: 'podsched.dev/v1',
    kind: 'SyncStatus',
    object: { kind: 'Pod', namespace: 'default', name },
    phase: 'Running',
    reason: 'Ready',
    message: 'all containers are ready',
    desired: { source, revision: 'abc123' },
    sources: [{ source, revision: 'abc123', phase: 'Accepted', reason: 'Accepted', message: 'accepted', problems: [] }],
    boot: 1,
    seq: 1,
    ...o,
  };
}

export const fileStatus = (file: string, problems: FileStatus['problems']): FileStatus => ({
  apiVersion: 'podsched.dev/v1',
  kind: 'FileStatus',
  file,
  objects: [],
  problems,
  boot: 1,
  seq: 1,
});

export const event = (name: string, reason: string, message: string, o: Partial<V1Event> = {}): V1Event => ({
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name: `${name}.1`, namespace: 'default' },
  involvedObject: { kind: 'Pod', namespace: 'default', name },
  type: 'Warning',
  reason,
  message,
  source: { component: 'podsched', host: 'pi-07' },
  firstTimestamp: '2026-01-01T00:50:00Z',
  lastTimestamp: '2026-01-01T00:59:30Z',
  count: 1,
  ...o,
});

export const agentView = (o: Partial<AgentView> = {}): AgentView => ({
  nodeName: 'pi-07',
  version: '1.2.3',
  pods: () => [told('web', { status: ready }), told('cam', { metadata: { namespace: 'kitchen' } })],
  sync: () => [sync('web'), sync('cam', { object: { kind: 'Pod', namespace: 'kitchen', name: 'cam' } })],
  files: () => [fileStatus('half.yaml', [{ path: '', file: 'half.yaml', line: 2, column: 1, expected: 'YAML', got: 'half of it' }])],
  events: (filter) =>
    [event('web', 'BackOff', 'back-off 10s')].filter(
      (e) =>
        (filter.namespace ?? e.metadata.namespace) === e.metadata.namespace &&
        (filter.name ?? e.involvedObject.name) === e.involvedObject.name,
    ),
  conditions: () => [],
  health: () => [{ name: 'runtime', ok: true, message: 'ok' }],
  logs: async () => ({ ok: false, code: 404, message: 'no logs here' }),
  stream: async () => ({ ok: false, code: 404, message: 'no sessions here' }),
  debug: async () => ({ ok: false, code: 404, message: 'no containers here' }),
  execCaptured: async () => ({ ok: false, code: 404, message: 'no commands here' }),
  act: async () => ({ ok: false, code: 404, message: 'no pods here' }),
  nodeAct: async () => ({ ok: false, code: 409, message: 'nothing to do here' }),
  bundle: async () => ({ ok: true, value: { kind: 'SupportBundle' } }),
  configuration: () => ({ runDir: '/run/podsched', staticPodPath: '/etc/podsched' }),
  ...o,
});
