import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import type { Container, ContainerId, ContainerState, RuntimePod, Sandbox, SandboxId, SandboxState } from '../../src/container/words.ts';
import { computeEvents } from '../../src/pleg/events.ts';
import type { WallTime } from '../../src/world/clock.ts';

const uid = 'uid-web' as PodUid;
const common = { uid, namespace: 'default', attempt: 0, createdAt: 0 as WallTime, labels: {}, annotations: {} };

const container = (id: string, state: ContainerState): Container => ({
  ...common,
  id: id as ContainerId,
  sandboxId: 's' as SandboxId,
  name: id,
  image: '',
  imageRef: '',
  state,
});
const sandbox = (id: string, state: SandboxState): Sandbox => ({ ...common, id: id as SandboxId, name: 'web', state });
const pod = (containers: readonly Container[], sandboxes: readonly Sandbox[] = []): RuntimePod => ({
  uid,
  name: 'web',
  namespace: 'default',
  sandboxes,
  containers,
});

type Seen = ContainerState | 'nothing';
const table: readonly (readonly [before: Seen, now: Seen, events: readonly string[]])[] = [
  ['nothing', 'running', ['ContainerStarted']],
  ['nothing', 'exited', ['ContainerDied']],
  ['nothing', 'created', ['ContainerChanged']],
  ['nothing', 'unknown', ['ContainerChanged']],
  ['created', 'running', ['ContainerStarted']],
  ['created', 'exited', ['ContainerDied']],
  ['created', 'unknown', []],
  ['created', 'nothing', ['ContainerDied', 'ContainerRemoved']],
  ['running', 'running', []],
  ['running', 'exited', ['ContainerDied']],
  ['running', 'unknown', ['ContainerChanged']],
  ['running', 'nothing', ['ContainerDied', 'ContainerRemoved']],
  ['exited', 'exited', []],
  ['exited', 'running', ['ContainerStarted']],
  ['exited', 'unknown', ['ContainerChanged']],
  ['exited', 'nothing', ['ContainerRemoved']],
  ['unknown', 'running', ['ContainerStarted']],
  ['unknown', 'exited', ['ContainerDied']],
  ['unknown', 'nothing', ['ContainerDied', 'ContainerRemoved']],
];

for (const [before, now, expected] of table) {
  test(`a container ${before} and then ${now}: ${expected.join(', ') || 'no event'}`, () => {
    const at = (s: Seen) => (s === 'nothing' ? pod([]) : pod([container('c', s)]));
    assert.deepEqual(
      computeEvents(at(before), at(now)),
      expected.map((type) => ({ uid, type, id: 'c' })),
    );
  });
}

test('sandboxes take part: ready runs, notready has exited', () => {
  const types = (before: RuntimePod | undefined, now: RuntimePod | undefined) => computeEvents(before, now).map((e) => `${e.type} ${e.id}`);
  const ready = pod([], [sandbox('s', 'ready')]);
  const dead = pod([], [sandbox('s', 'notready')]);
  assert.deepEqual(types(undefined, ready), ['ContainerStarted s']);
  assert.deepEqual(types(ready, dead), ['ContainerDied s']);
  assert.deepEqual(types(dead, undefined), ['ContainerRemoved s']);
  assert.deepEqual(types(ready, undefined), ['ContainerDied s', 'ContainerRemoved s']);
  assert.deepEqual(types(undefined, undefined), []);
});

test('a container that exits and is started anew between two lists tells both in one pass', () => {
  const before = pod([container('old', 'running')]);
  const now = pod([container('new', 'running'), container('old', 'exited')]);
  assert.deepEqual(
    computeEvents(before, now).map((e) => `${e.type} ${e.id}`),
    ['ContainerStarted new', 'ContainerDied old'],
  );
});
