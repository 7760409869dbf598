import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ageText, spanText } from '../../src/operations/age.ts';
import { podRow, podStatusText } from '../../src/operations/podRow.ts';
import { cs, ended, nowMs, type PodParts, ready, running, told, waiting } from './view.ts';

const initialized = { type: 'Initialized', status: 'True', lastTransitionTime: '' } as const;
const init = (...names: string[]) => ({ initContainers: names.map((name) => ({ name, image: 'i' })) });
const sidecar = { initContainers: [{ name: 'side', image: 'i', restartPolicy: 'Always' as const }] };

// what kubectl 1.32 prints for such pods
const cases: readonly (readonly [status: string, ready: string, pod: PodParts])[] = [
  ['Running', '1/1', { status: ready }],
  ['Pending', '0/1', { status: { phase: 'Pending', containerStatuses: [cs('app')] } }],
  ['ContainerCreating', '0/1', { status: { phase: 'Pending', containerStatuses: [cs('app', { state: waiting('ContainerCreating') })] } }],
  ['CrashLoopBackOff', '0/1', { status: { containerStatuses: [cs('app', { state: waiting('CrashLoopBackOff') })] } }],
  [
    'CrashLoopBackOff',
    '1/2',
    { status: { containerStatuses: [cs('a', { state: waiting('CrashLoopBackOff') }), cs('b', { state: running, ready: true })] } },
  ],
  [
    'ErrImagePull',
    '0/2',
    { status: { containerStatuses: [cs('a', { state: waiting('ErrImagePull') }), cs('b', { state: waiting('ContainerCreating') })] } },
  ],
  ['Completed', '0/1', { status: { phase: 'Succeeded', containerStatuses: [cs('app', { state: ended(0, 'Completed') })] } }],
  ['Error', '0/1', { status: { phase: 'Failed', containerStatuses: [cs('app', { state: ended(1, 'Error') })] } }],
  ['ExitCode:3', '0/1', { status: { phase: 'Failed', containerStatuses: [cs('app', { state: ended(3) })] } }],
  ['OOMKilled', '0/1', { status: { phase: 'Failed', containerStatuses: [cs('app', { state: ended(137, 'OOMKilled') })] } }],
  [
    'Running',
    '1/2',
    { status: { ...ready, containerStatuses: [cs('a', { state: ended(0, 'Completed') }), cs('b', { state: running, ready: true })] } },
  ],
  [
    'NotReady',
    '1/2',
    { status: { containerStatuses: [cs('a', { state: ended(0, 'Completed') }), cs('b', { state: running, ready: true })] } },
  ],
  ['DeadlineExceeded', '0/1', { status: { phase: 'Failed', reason: 'DeadlineExceeded', containerStatuses: [cs('app')] } }],
  [
    'Error',
    '0/1',
    { status: { phase: 'Failed', reason: 'DeadlineExceeded', containerStatuses: [cs('app', { state: ended(137, 'Error') })] } },
  ],
  ['Terminating', '1/1', { metadata: { deletionTimestamp: '2026-01-01T01:00:30Z' } }],
  [
    'Completed',
    '0/1',
    {
      metadata: { deletionTimestamp: '2026-01-01T01:00:30Z' },
      status: { phase: 'Succeeded', containerStatuses: [cs('app', { state: ended(0, 'Completed') })] },
    },
  ],
  [
    'Init:0/2',
    '0/1',
    {
      spec: init('i', 'j'),
      status: { phase: 'Pending', initContainerStatuses: [cs('i', { state: running }), cs('j', { state: waiting('PodInitializing') })] },
    },
  ],
  [
    'Init:1/2',
    '0/1',
    {
      spec: init('i', 'j'),
      status: { phase: 'Pending', initContainerStatuses: [cs('i', { state: ended(0, 'Completed') }), cs('j', { state: running })] },
    },
  ],
  ['Init:Error', '0/1', { spec: init('i'), status: { phase: 'Pending', initContainerStatuses: [cs('i', { state: ended(1, 'Error') })] } }],
  ['Init:ExitCode:2', '0/1', { spec: init('i'), status: { phase: 'Pending', initContainerStatuses: [cs('i', { state: ended(2) })] } }],
  [
    'Init:CrashLoopBackOff',
    '0/1',
    { spec: init('i'), status: { phase: 'Pending', initContainerStatuses: [cs('i', { state: waiting('CrashLoopBackOff') })] } },
  ],
  [
    'PodInitializing',
    '0/1',
    {
      spec: init('i'),
      status: {
        phase: 'Pending',
        initContainerStatuses: [cs('i', { state: ended(0, 'Completed') })],
        containerStatuses: [cs('app', { state: waiting('PodInitializing') })],
      },
    },
  ],
  [
    'Running',
    '2/2',
    {
      spec: sidecar,
      status: { initContainerStatuses: [cs('side', { state: running, started: true, ready: true })], conditions: [initialized] },
    },
  ],
  [
    'Init:0/1',
    '0/2',
    { spec: sidecar, status: { phase: 'Pending', initContainerStatuses: [cs('side', { state: running, started: false })] } },
  ],
  [
    // a sidecar that crashes later: the pod is initialized, and its containers say nothing
    'Init:CrashLoopBackOff',
    '1/2',
    { spec: sidecar, status: { conditions: [initialized], initContainerStatuses: [cs('side', { state: waiting('CrashLoopBackOff') })] } },
  ],
];

test('STATUS and READY are those of kubectl', () => {
  for (const [status, readyText, parts] of cases) {
    const containerStatuses = parts.status?.containerStatuses;
    const initializing = parts.spec?.initContainers !== undefined && parts.status?.phase === 'Pending' && containerStatuses === undefined;
    const pod = told(
      'web',
      initializing
        ? { ...parts, status: { ...parts.status, containerStatuses: [cs('app', { state: waiting('PodInitializing') })] } }
        : parts,
    );
    assert.equal(podStatusText(pod), status, JSON.stringify(parts));
    assert.equal(podRow(pod, nowMs).ready, readyText, JSON.stringify(parts));
  }
});

test('RESTARTS names the newest restart; those of init containers count until they are done', () => {
  const restarted = cs('app', { state: running, ready: true, restartCount: 3, lastState: ended(1, 'Error') });
  assert.equal(podRow(told('web', { status: { containerStatuses: [restarted] } }), nowMs).restarts, '3 (5m ago)');
  const failing = cs('i', { state: waiting('CrashLoopBackOff'), restartCount: 2 });
  const pod = { spec: init('i'), status: { phase: 'Pending' as const, initContainerStatuses: [failing], containerStatuses: [cs('app')] } };
  assert.equal(podRow(told('web', pod), nowMs).restarts, '2');
  const done = { ...pod, status: { ...pod.status, initContainerStatuses: [{ ...failing, state: ended(0, 'Completed') }] } };
  assert.equal(podRow(told('web', done), nowMs).restarts, '0');
});

test('a row has what wide adds, and <none> where there is nothing', () => {
  const row = podRow(told('web', { status: ready }), nowMs);
  assert.deepEqual([row.age, row.ip, row.node, row.source, row.revision], ['60m', '10.88.0.5', 'pi-07', 'file:web.yaml', 'abc123']);
  const { podIP: _, ...status } = told('web').status;
  assert.equal(podRow({ ...told('web'), status }, nowMs).ip, '<none>');
});

test('ages are written as kubectl writes them', () => {
  const table: readonly (readonly [number, string])[] = [
    [-60, '<invalid>'],
    [-1, '0s'],
    [0, '0s'],
    [119, '119s'],
    [120, '2m'],
    [125, '2m5s'],
    [600, '10m'],
    [10_799, '179m'],
    [10_800, '3h'],
    [11_160, '3h6m'],
    [8 * 3600, '8h'],
    [47 * 3600, '47h'],
    [48 * 3600, '2d'],
    [50 * 3600, '2d2h'],
    [8 * 86_400, '8d'],
    [729 * 86_400, '729d'],
    [730 * 86_400, '2y'],
    [735 * 86_400, '2y5d'],
    [3000 * 86_400, '8y'],
  ];
  for (const [seconds, text] of table) assert.equal(spanText(seconds), text, String(seconds));
  assert.equal(ageText(undefined, nowMs), '<unknown>');
  assert.equal(ageText('nonsense', nowMs), '<unknown>');
});
