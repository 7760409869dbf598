/** Every situation of the kubelet's computePodActions that is known, each run against the real v1.32 function. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import type { Container, Pod, RestartPolicy } from '../../src/api/v1.ts';
import type { ProbeResult } from '../../src/container/probes.ts';
import type { ContainerId, ContainerState, ContainerStatus, RuntimePodStatus, SandboxId } from '../../src/container/words.ts';
import { annotations } from '../../src/container/words.ts';
import { computePodActions } from '../../src/kuberuntime/actions.ts';
import type { WallTime } from '../../src/world/clock.ts';

interface CaseContainer {
  name: string;
  image: string;
  sidecar?: boolean;
  livenessProbe?: boolean;
  startupProbe?: boolean;
}
interface Case {
  id: string;
  title: string;
  pod: {
    restartPolicy: RestartPolicy;
    hostNetwork: boolean;
    deleting: boolean;
    initContainers: CaseContainer[];
    containers: CaseContainer[];
    ephemeralContainers: CaseContainer[];
  };
  runtime: {
    sandboxes: { id: string; state: 'READY' | 'NOTREADY'; attempt: number; ip: string | null; network: 'POD' | 'NODE' }[];
    containers: {
      id: string;
      name: string;
      state: ContainerState;
      exitCode: number;
      reason?: string;
      hash: 'match' | 'mismatch';
      liveness: ProbeResult | 'none';
      startup: ProbeResult | 'none';
    }[];
  };
  expect: {
    killPod: boolean;
    createSandbox: boolean;
    sandboxId: string;
    attempt: number;
    startInit: number[];
    startContainers: number[];
    startEphemeral: number[];
    killContainers: { id: string; reason: string }[];
  };
}

const { cases } = JSON.parse(readFileSync(new URL('compute-pod-actions.json', import.meta.url), 'utf8')) as { cases: Case[] };
const uid = 'uid-1' as PodUid;
const probe = { exec: { command: ['true'] } };

function podOf(c: Case): Pod {
  const container = (x: CaseContainer): Container => ({
    name: x.name,
    image: x.image,
    ...(x.sidecar ? { restartPolicy: 'Always' as const } : {}),
    ...(x.livenessProbe ? { livenessProbe: probe } : {}),
    ...(x.startupProbe ? { startupProbe: probe } : {}),
  });
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'default' },
    spec: {
      restartPolicy: c.pod.restartPolicy,
      hostNetwork: c.pod.hostNetwork,
      initContainers: c.pod.initContainers.map(container),
      containers: c.pod.containers.map(container),
      ephemeralContainers: c.pod.ephemeralContainers.map(container),
    },
  };
}

function statusOf(c: Case): RuntimePodStatus {
  const common = { namespace: 'default', labels: {}, createdAt: 0 as WallTime };
  return {
    uid,
    name: 'p',
    namespace: 'default',
    ips: [],
    sandboxes: c.runtime.sandboxes.map((s) => ({
      ...common,
      id: s.id as SandboxId,
      name: 'p',
      uid,
      attempt: s.attempt,
      state: s.state === 'READY' ? 'ready' : 'notready',
      annotations: {},
      networkMode: s.network,
      ...(s.ip === null ? {} : { network: { ip: s.ip, additionalIps: [] } }),
    })),
    containers: c.runtime.containers.map(
      (r): ContainerStatus => ({
        id: r.id as ContainerId,
        sandboxId: 'sb' as SandboxId,
        name: r.name,
        attempt: 0,
        image: '',
        imageRef: '',
        state: r.state,
        createdAt: 0 as WallTime,
        labels: {},
        annotations: { [annotations.ourContainerHash]: r.hash },
        exitCode: r.exitCode,
        reason: r.reason ?? '',
        message: '',
        mounts: [],
        logPath: '',
      }),
    ),
  };
}

test('the table has its 104 cases', () => assert.equal(cases.length, 104));

for (const c of cases) {
  test(`${c.id}: ${c.title}`, () => {
    const result = (id: string, which: 'liveness' | 'startup'): ProbeResult | undefined => {
      const value = c.runtime.containers.find((r) => r.id === id)?.[which];
      return value === undefined || value === 'none' ? undefined : value;
    };
    const actions = computePodActions(podOf(c), statusOf(c), {
      hashOf: () => 'match',
      sameHash: (recorded, wanted) => recorded === wanted,
      liveness: (id) => result(id, 'liveness'),
      startup: (id) => result(id, 'startup'),
      deleting: c.pod.deleting,
    });
    const byId = (a: { id: string }, b: { id: string }) => a.id.localeCompare(b.id);
    assert.deepEqual(
      {
        ...actions,
        sandboxId: actions.sandboxId ?? '',
        killContainers: actions.killContainers.map(({ id, reason }) => ({ id, reason })).sort(byId),
      },
      { ...c.expect, killContainers: c.expect.killContainers.map(({ id, reason }) => ({ id, reason })).sort(byId) },
    );
  });
}
