/** Every row of "What an edit does" (behaviour.md) that this version's fields reach, in every state of the instance it meets. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceState } from '../../src/api/desired.ts';
import { classifyEdit, type EditEffect } from '../../src/api/edit.ts';
import { podHashes } from '../../src/api/hash.ts';
import { pod, type Raw, rawPod } from './objects.ts';

const running: InstanceState = { sandboxDead: false, finished: false, initUnfinished: false, terminating: false };
const rebooted: InstanceState = { ...running, sandboxDead: true };
const finished: InstanceState = { ...running, finished: true };
const finishedDead: InstanceState = { ...finished, sandboxDead: true };
const inInit: InstanceState = { ...running, initUnfinished: true };
const rebootedInInit: InstanceState = { ...rebooted, initUnfinished: true };
const ending: InstanceState = { ...running, terminating: true };
const endingDead: InstanceState = { ...ending, sandboxDead: true };

const effect = (before: Raw, after: Raw, state: InstanceState): EditEffect =>
  classifyEdit(podHashes(pod(before)), podHashes(pod(after)), state);

const one = { name: 'one', image: 'x:1', ports: [{ containerPort: 80, hostPort: 8080 }] };
const two = { name: 'two', image: 'x:1' };
const setup = { name: 'setup', image: 'x:1' };
const side = { name: 'side', image: 'x:1', restartPolicy: 'Always' };
const base = rawPod({ containers: [one, two], initContainers: [setup, side] }, {}, { labels: { a: '1' } });
const edit = (spec: Raw, metadata: Raw = {}): Raw =>
  rawPod({ containers: [one, two], initContainers: [setup, side], ...spec }, {}, { labels: { a: '1' }, ...metadata });
const inOne = (more: Raw): Raw => edit({ containers: [{ ...one, ...more }, two] });

const firstRow: Readonly<Record<string, Raw>> = {
  labels: edit({}, { labels: { a: '2' } }),
  'labels gone': edit({}, { labels: {} }),
  annotations: edit({}, { annotations: { note: 'x' } }),
  'podsched’s own annotation': edit({}, { annotations: { 'podsched.dev/crash-backoff': '1s,1m' } }),
  terminationGracePeriodSeconds: edit({ terminationGracePeriodSeconds: 5 }),
  activeDeadlineSeconds: edit({ activeDeadlineSeconds: 60 }),
  tolerations: edit({ tolerations: [{ operator: 'Exists' }] }),
  priority: edit({ priority: 7 }),
  'nodeSelector that still fits': edit({ nodeSelector: { site: 'attic' } }),
  'affinity that still fits': edit({
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{}] } } },
  }),
  'order of containers': edit({ containers: [two, one] }),
};

const inOneContainer: Readonly<Record<string, Raw>> = {
  image: inOne({ image: 'x:2' }),
  command: inOne({ command: ['sleep'] }),
  args: inOne({ args: ['1'] }),
  env: inOne({ env: [{ name: 'A', value: 'b' }] }),
  workingDir: inOne({ workingDir: '/tmp' }),
  imagePullPolicy: inOne({ imagePullPolicy: 'Always' }),
  stdin: inOne({ stdin: true }),
  tty: inOne({ tty: true }),
  'runAsUser of a container': inOne({ securityContext: { runAsUser: 5 } }),
  'a port without hostPort': inOne({ ports: [{ containerPort: 80, hostPort: 8080 }, { containerPort: 81 }] }),
  'the name of a port': inOne({ ports: [{ containerPort: 80, hostPort: 8080, name: 'http' }] }),
  'two containers at once': edit({
    containers: [
      { ...one, image: 'x:2' },
      { ...two, image: 'x:2' },
    ],
  }),
};

const newPod: Readonly<Record<string, Raw>> = {
  'a container added': edit({ containers: [one, two, { name: 'three', image: 'x:1' }] }),
  'a container removed': edit({ containers: [one] }),
  'a container renamed': edit({ containers: [one, { ...two, name: 'other' }] }),
  'an init container edited': edit({ initContainers: [{ ...setup, image: 'x:2' }, side] }),
  'a sidecar edited': edit({ initContainers: [setup, { ...side, image: 'x:2' }] }),
  'an init container removed': edit({ initContainers: [side] }),
  'the order of init containers': edit({ initContainers: [side, setup] }),
  'a sidecar made plain': edit({ initContainers: [setup, { name: 'side', image: 'x:1' }] }),
  hostPort: inOne({ ports: [{ containerPort: 80, hostPort: 8081 }] }),
  hostIP: inOne({ ports: [{ containerPort: 80, hostPort: 8080, hostIP: '127.0.0.1' }] }),
  'protocol of a hostPort': inOne({ ports: [{ containerPort: 80, hostPort: 8080, protocol: 'UDP' }] }),
  'the port behind a hostPort': inOne({ ports: [{ containerPort: 81, hostPort: 8080 }] }),
  'a hostPort gone': inOne({ ports: [{ containerPort: 80 }] }),
  'first privileged': inOne({ securityContext: { privileged: true } }),
  'QoS class': inOne({ resources: { requests: { cpu: '100m' } } }),
  hostNetwork: edit({ hostNetwork: true, containers: [{ ...one, ports: [] }, two] }),
  hostPID: edit({ hostPID: true }),
  hostIPC: edit({ hostIPC: true }),
  shareProcessNamespace: edit({ shareProcessNamespace: true }),
  hostname: edit({ hostname: 'gw' }),
  dnsPolicy: edit({ dnsPolicy: 'Default' }),
  restartPolicy: edit({ restartPolicy: 'OnFailure' }),
  priorityClassName: edit({ priorityClassName: 'system-cluster-critical' }),
  'a field no other row names': edit({ schedulerName: 'mine' }),
  'an annotation read at creation': edit({}, { annotations: { 'kubernetes.io/ingress-bandwidth': '1M' } }),
  'a CDI annotation': edit({}, { annotations: { 'cdi.k8s.io/gpio': 'vendor.com/gpio=0' } }),
  'an annotation of the runtime': edit({}, { annotations: { 'io.kubernetes.cri.any': 'x' } }),
};

const table: readonly {
  readonly row: string;
  readonly edits: Readonly<Record<string, Raw>>;
  readonly expected: readonly (readonly [InstanceState, string, EditEffect])[];
}[] = [
  {
    row: 'labels, annotations, grace, order: nothing restarts',
    edits: firstRow,
    expected: [
      [running, 'running', 'reconcile'],
      [inInit, 'an init container unfinished', 'reconcile'],
      [finished, 'finished', 'reconcile'],
      [finishedDead, 'finished, then a reboot', 'reconcile'],
      [ending, 'ending', 'reconcile'],
      [endingDead, 'ending, sandbox dead', 'reconcile'],
      [rebooted, 'sandbox dead', 'update'],
      [rebootedInInit, 'sandbox dead, init unfinished', 'update'],
    ],
  },
  {
    row: 'inside one container: that container',
    edits: inOneContainer,
    expected: [
      [running, 'running', 'update'],
      [rebooted, 'sandbox dead', 'update'],
      [inInit, 'an init container unfinished', 'replace'],
      [rebootedInInit, 'sandbox dead, init unfinished', 'replace'],
      [finished, 'finished', 'replace'],
      [finishedDead, 'finished, then a reboot', 'replace'],
      [ending, 'ending', 'replace'],
      [endingDead, 'ending, sandbox dead', 'replace'],
    ],
  },
  {
    row: 'what makes the pod: a new pod',
    edits: newPod,
    expected: [running, rebooted, inInit, rebootedInInit, finished, finishedDead, ending, endingDead].map(
      (s) => [s, JSON.stringify(s), 'replace'] as const,
    ),
  },
];

for (const { row, edits, expected } of table) {
  test(row, () => {
    for (const [what, after] of Object.entries(edits)) {
      for (const [state, named, wanted] of expected) assert.equal(effect(base, after, state), wanted, `${what}; ${named}`);
      // and back again
      for (const [state, named, wanted] of expected) assert.equal(effect(after, base, state), wanted, `${what} undone; ${named}`);
    }
  });
}

test('the same content is no edit, in whatever state, whatever source it comes from', () => {
  for (const state of [running, rebooted, finished, inInit, ending])
    assert.equal(effect(base, edit({ restartPolicy: 'Always' }, { uid: 'x' }), state), 'none');
});

test('the last privileged container makes a new pod when it goes, the second one does not', () => {
  const privileged = { securityContext: { privileged: true } };
  const both = edit({
    containers: [
      { ...one, ...privileged },
      { ...two, ...privileged },
    ],
  });
  const first = edit({ containers: [{ ...one, ...privileged }, two] });
  assert.equal(effect(both, first, running), 'update');
  assert.equal(effect(first, both, running), 'update');
  assert.equal(effect(first, base, running), 'replace');
});

test('resources edited within one QoS class restart the container alone', () => {
  const limited = (cpu: string) => inOne({ resources: { requests: { cpu } } });
  assert.equal(effect(limited('100m'), limited('200m'), running), 'update');
  assert.equal(effect(limited('100m'), inOne({ resources: { requests: { cpu: '0.1' } } }), running), 'none');
});

test('an edit of several rows is judged by the strongest', () => {
  assert.equal(effect(base, edit({ hostname: 'gw', terminationGracePeriodSeconds: 1 }, { labels: {} }), running), 'replace');
  assert.equal(effect(base, edit({ containers: [{ ...one, image: 'x:2' }, two], priority: 3 }, { labels: {} }), running), 'update');
});
