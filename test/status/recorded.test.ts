/** The status a real kubelet 1.32 showed for these manifests, against ours from the same runtime words. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { PodSpec } from '../../src/api/v1.ts';
import type { ContainerStatus } from '../../src/container/words.ts';
import type { Reason } from '../../src/status/containers.ts';
import { desiredPod, generate, record, runtimePod, sandbox } from './build.ts';

interface Recorded {
  readonly manifest: string;
  readonly metadata: { readonly name: string };
  readonly spec: PodSpec;
  readonly status: { readonly containerStatuses?: readonly { readonly name: string; readonly state: { waiting?: Reason } }[] };
}
const recorded = JSON.parse(readFileSync(new URL('./recorded.json', import.meta.url), 'utf8')) as Record<string, Recorded>;

interface World {
  readonly containers: readonly ContainerStatus[];
  /** The worker ended the pod: its sandbox is stopped. */
  readonly terminal?: true;
  /** The recording's own waiting reason came from the start results. */
  readonly reasonOf?: string;
}

const image = { image: 'localhost/busybox:1', imageRef: 'sha256:<digest>' };
const run = (name: string) => record(name, 'running', image);
const ended = (name: string, exitCode: number, o: Partial<ContainerStatus> = {}) => record(name, 'exited', { ...image, exitCode, ...o });

/** What the recorded sequence of CRI calls left in the runtime. */
const worlds: Readonly<Record<string, World>> = {
  '001': { containers: [run('c')] },
  '005': { containers: [run('a'), run('b')] },
  '021': { containers: [ended('first', 0), ended('second', 0), run('main')] },
  '023': { containers: [ended('c', 0, { message: 'finished\n' })], terminal: true },
  '024': { containers: [ended('a', 3), ended('b', 0)], terminal: true },
  '025': { containers: [ended('ok', 0), run('run')] },
  '026': { containers: [ended('c', 7, { attempt: 4, message: 'boom\n' }), ended('c', 7, { attempt: 3 })], reasonOf: 'c' },
  '032': { containers: [], reasonOf: 'c' },
  '033': { containers: [], reasonOf: 'c' },
  '034': { containers: [], reasonOf: 'c' },
  '044': { containers: [ended('i', 5)], terminal: true },
};

/** The recording's placeholders; what it writes as null is left out by us. */
function normalise(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) return value.map((v) => normalise(v));
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(
      Object.entries(value)
        .filter(([k, v]) => v !== null && !allowed.has(k))
        .map(([k, v]) => [k, normalise(v, k)]),
    );
  }
  if (typeof value !== 'string') return value;
  if (/^(startedAt|finishedAt|startTime|lastTransitionTime)$/.test(key)) return '<time>';
  if (key === 'containerID') return value.replace(/\/\/.+$/, '//<id>');
  return value.replaceAll('10.0.0.5', '<pod-ip>');
}

/** Allowed differences: our hostIP is filled in; mounts are shown when the room of volumes stands. */
const allowed: ReadonlySet<string> = new Set(['hostIP', 'hostIPs', 'volumeMounts']);

for (const [id, { manifest, metadata, spec, status }] of Object.entries(recorded)) {
  test(`status of ${manifest} is the kubelet's`, () => {
    const world = worlds[id];
    assert.ok(world);
    const reasons = new Map<string, Reason>();
    if (world.reasonOf !== undefined) {
      const waiting = status.containerStatuses?.find((c) => c.name === world.reasonOf)?.state.waiting;
      assert.ok(waiting);
      reasons.set(world.reasonOf, waiting);
    }
    const desired = desiredPod(spec, { name: metadata.name });
    // the pod ran before it ended: the address is kept, as is what was told
    const before = generate(desired, runtimePod(world.containers));
    const runtime = world.terminal ? runtimePod(world.containers, [sandbox({ state: 'notready' })], []) : runtimePod(world.containers);
    const ours = generate(desired, runtime, { reasons, terminal: world.terminal === true, ...(world.terminal && { old: before }) });
    assert.deepEqual(normalise(ours), normalise(status));
  });
}
