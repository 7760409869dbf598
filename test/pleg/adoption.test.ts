import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyText, PodUid } from '../../src/api/objects.ts';
import type { ContainerState, RuntimePod, SandboxState } from '../../src/container/words.ts';
import { adoptableUid, isAlive, predecessorsOf } from '../../src/pleg/adoption.ts';

const web = 'Pod/default/web' as KeyText;

/** A pod of one sandbox. */
const pod = (uid: string, hash: string, attempt: number, state: SandboxState, o: { name?: string; createdAt?: number } = {}): RuntimePod =>
  ({
    uid,
    name: o.name ?? 'web',
    namespace: 'default',
    sandboxes: [{ uid, attempt, state, createdAt: o.createdAt ?? 0, annotations: { 'podsched.dev/pod-hash': hash } }],
    containers: [],
  }) as unknown as RuntimePod;

const table: readonly (readonly [what: string, readonly RuntimePod[], uid: string | undefined])[] = [
  ['the runtime has none of that key', [pod('u1', '1:a', 0, 'ready', { name: 'other' })], undefined],
  ['the only one, whatever its hash', [pod('u1', '1:b', 0, 'notready')], 'u1'],
  ['the same hash weighs more than attempt and state', [pod('u1', '1:b', 7, 'ready'), pod('u2', '1:a', 0, 'notready')], 'u2'],
  ['then the highest attempt', [pod('u1', '1:a', 0, 'ready'), pod('u2', '1:a', 3, 'notready')], 'u2'],
  ['then the ready one', [pod('u1', '1:a', 1, 'notready'), pod('u2', '1:a', 1, 'ready')], 'u2'],
  ['then the one made later', [pod('u1', '1:a', 1, 'ready', { createdAt: 1 }), pod('u2', '1:a', 1, 'ready', { createdAt: 2 })], 'u2'],
];
for (const [what, pods, uid] of table) {
  test(`it goes on as: ${what}`, () => {
    assert.equal(adoptableUid(pods, web, '1:a'), uid);
    assert.equal(adoptableUid([...pods].reverse(), web, '1:a'), uid, 'in any order of the list');
  });
}

const alive: readonly (readonly [SandboxState, ContainerState, boolean])[] = [
  ['ready', 'exited', true],
  ['notready', 'running', true],
  ['notready', 'unknown', true],
  ['notready', 'exited', false],
  ['notready', 'created', false],
];
for (const [sandbox, container, expected] of alive) {
  test(`a ${sandbox} sandbox with a container that is ${container} is ${expected ? '' : 'not '}alive`, () => {
    const p = { ...pod('u1', '', 0, sandbox), containers: [{ state: container }] } as unknown as RuntimePod;
    assert.equal(isAlive(p), expected);
  });
}

test('a predecessor is another instance of the same name that still lives', () => {
  const pods = [
    pod('self', '1:a', 0, 'ready'),
    pod('earlier', '1:a', 0, 'ready'),
    pod('ended', '1:a', 0, 'notready'),
    pod('other', '1:a', 0, 'ready', { name: 'other' }),
  ];
  const self = { namespace: 'default', name: 'web', uid: 'self' as PodUid };
  assert.deepEqual(
    predecessorsOf(pods, self).map((p) => p.uid),
    ['earlier'],
  );
});
