import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { V1ContainerStatus } from '../../src/api/status.ts';
import type { PodSpec, RestartPolicy } from '../../src/api/v1.ts';
import { getPhase } from '../../src/status/phase.ts';

interface CaseStatus {
  readonly state: 'waiting' | 'running' | 'terminated';
  readonly exitCode?: number;
  readonly lastExitCode?: number;
  readonly started?: boolean;
  readonly reason?: string;
}
interface Case {
  readonly id: string;
  readonly title: string;
  readonly pod: {
    readonly restartPolicy: RestartPolicy;
    readonly static: boolean;
    readonly initContainers: readonly { readonly name: string; readonly sidecar: boolean }[];
    readonly containers: readonly string[];
  };
  readonly podIsTerminal: boolean;
  readonly statuses: Readonly<Record<string, CaseStatus>>;
  readonly expectPhase: string;
}

const { cases } = JSON.parse(readFileSync(new URL('./pod-phase.json', import.meta.url), 'utf8')) as { cases: Case[] };

const toStatus = ([name, s]: [string, CaseStatus]): V1ContainerStatus => ({
  name,
  state:
    s.state === 'running'
      ? { running: { startedAt: '2026-01-01T00:00:00Z' } }
      : s.state === 'terminated'
        ? { terminated: { exitCode: s.exitCode ?? 0 } }
        : { waiting: { reason: s.reason ?? '' } },
  lastState: s.lastExitCode === undefined ? {} : { terminated: { exitCode: s.lastExitCode } },
  ready: false,
  restartCount: 0,
  image: 'x',
  imageID: '',
  ...(s.started !== undefined && { started: s.started }),
});

test('all cases of kubelet 1.32 are here', () => assert.equal(cases.length, 85));

for (const c of cases) {
  test(`phase ${c.id}: ${c.title}`, () => {
    const spec: PodSpec = {
      restartPolicy: c.pod.restartPolicy,
      initContainers: c.pod.initContainers.map((i) => ({
        name: i.name,
        image: 'x',
        ...(i.sidecar && { restartPolicy: 'Always' as const }),
      })),
      containers: c.pod.containers.map((name) => ({ name, image: 'x' })),
    };
    const phase = getPhase(spec, Object.entries(c.statuses).map(toStatus), { terminal: c.podIsTerminal, static: c.pod.static });
    assert.equal(phase, c.expectPhase);
  });
}
