/**
 * What we send to the runtime equals what kubelet 1.32 sent for the same manifest, field by field, but for the differences named here.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import { toDesiredPod } from '../../src/api/instance.ts';
import type { PodUid } from '../../src/api/objects.ts';
import type { Pod } from '../../src/api/v1.ts';
import { containerConfig, sandboxConfig } from '../../src/kuberuntime/configs.ts';
import { containerWords, differences, type Json, normal, sandboxWords } from './kubelet-1.32/recording.ts';

const folder = new URL('kubelet-1.32/', import.meta.url);
/** Of the machine the recordings were made on: the oom_score_adj values in them allow no other. */
const recordedNodeMemoryBytes = 25_300_000_000;

interface Recording {
  manifest: string;
  podName: string;
  sandbox: { [key: string]: Json };
  containers: { [name: string]: { [key: string]: Json } };
}

type Fields = { [key: string]: unknown };
const inside = (o: unknown, ...path: string[]): Fields => {
  let at = o as Fields;
  for (const key of path) at = (at[key] ?? {}) as Fields;
  return at;
};
const drop = (o: Fields, keys: readonly string[]): void => {
  for (const key of keys) delete o[key];
};

/** Ours alone. */
const ownMarks = [
  'podsched.dev/managed',
  'podsched.dev/pod-hash',
  'podsched.dev/container-hash',
  'podsched.dev/source',
  'podsched.dev/started',
];

/** Our side: what has no counterpart in a recording. */
function withoutOwn(words: unknown): unknown {
  const copy = structuredClone(words) as Fields;
  drop(inside(copy, 'labels'), ownMarks);
  // hashes are of our own scheme, and config.hash is the revision
  drop(inside(copy, 'annotations'), [
    ...ownMarks,
    'io.kubernetes.container.hash',
    'kubernetes.io/config.hash',
    'kubernetes.io/config.seen',
  ]);
  return copy;
}

/** No node name in pod names; in the environment the recordings have it plainly. */
const withoutNode = (o: unknown): Fields =>
  JSON.parse(
    JSON.stringify(o)
      .replaceAll(/-(<node>|pi-lab)/g, '')
      .replaceAll('pi-lab', '<node>'),
  ) as Fields;

/** An id, of which a recording leaves 0 out. */
function withId(security: Fields, field: 'run_as_user' | 'run_as_group'): void {
  const id = security[field] as { value?: number } | undefined;
  if (id !== undefined) security[field] = { present: 'yes', value: id.value ?? 0 };
}

/** Their side of a sandbox: what we do not send, and why. */
function recordedSandbox(r: Recording): unknown {
  const copy = withoutNode(r.sandbox);
  for (const field of ['run_as_user', 'run_as_group'] as const) withId(inside(copy, 'linux', 'security_context'), field);
  drop(inside(copy, 'annotations'), ['kubernetes.io/config.hash', 'kubernetes.io/config.seen']); // hashes and times of our own
  return copy;
}

/** Their side of a container: what we do not send, and why. */
function recordedContainer(c: { [key: string]: Json }): unknown {
  const copy = withoutNode(c);
  drop(inside(copy, 'annotations'), ['io.kubernetes.container.hash']); // a hash of our own scheme
  const resources = inside(copy, 'linux', 'resources');
  // hugepages: all limits are 0, which is what a container gets without them; pods that ask for some are refused at this stage
  // swap: recorded on cgroup v1; the runtime itself makes it equal to the memory limit, and v2 takes unified keys (cm)
  drop(resources, ['hugepage_limits', 'memory_swap_limit_in_bytes']);
  // /etc/hosts and the termination log come with the pod's own folder, volumes with theirs
  delete copy.mounts;
  // service variables are the fork's that was recorded
  copy.envs = ((copy.envs ?? []) as { key: string }[]).filter((e) => !e.key.startsWith('KUBERNETES_SERVICE_'));
  const security = inside(copy, 'linux', 'security_context');
  for (const field of ['run_as_user', 'run_as_group'] as const) withId(security, field);
  return copy;
}

for (const file of readdirSync(new URL('recorded/', folder)).sort()) {
  const recording = JSON.parse(readFileSync(new URL(`recorded/${file}`, folder), 'utf8')) as Recording;
  const manifest = parse(readFileSync(new URL(`manifests/${recording.manifest}`, folder), 'utf8')) as Pod;
  const desired = toDesiredPod(manifest, {
    uid: '<uid>' as PodUid,
    source: `file:${recording.manifest}`,
    nodeName: '<node>',
    firstSeen: '2026-01-01T00:00:00Z',
  });

  test(`${recording.manifest}: the sandbox is asked for as the kubelet asks`, () => {
    const config = sandboxConfig(desired, {
      attempt: 0,
      nodeName: '<node>',
      podLogsDir: '/var/log/pods',
      started: 'boot/1',
      cgroupDriver: 'cgroupfs',
      hostDns: { servers: ['<host-dns>'], searches: [], options: [] },
    });
    assert.deepEqual(differences(normal(withoutOwn(sandboxWords(config))), normal(recordedSandbox(recording))), []);
  });

  for (const [name, recorded] of Object.entries(recording.containers)) {
    test(`${recording.manifest}: container ${name} is asked for as the kubelet asks`, () => {
      const { containers, initContainers = [] } = desired.pod.spec;
      const spec = [...initContainers, ...containers].find((c) => c.name === name);
      assert.ok(spec);
      const config = containerConfig(desired, spec, {
        attempt: 0,
        image: { id: 'sha256:<digest>', username: '' },
        nodeName: '<node>',
        nodeMemoryBytes: recordedNodeMemoryBytes,
        thermalThrottlePaths: [],
      });
      assert.deepEqual(differences(normal(withoutOwn(containerWords(config))), normal(recordedContainer(recorded))), []);
    });
  }
}
