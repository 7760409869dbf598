/** Who was asked to be restarted: the very container, until another has taken its place. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import type { ContainerId, ContainerStatus, RuntimePodStatus } from '../../src/container/words.ts';
import { restartBackoffKey } from '../../src/kuberuntime/names.ts';
import { Restarts } from '../../src/kuberuntime/restarts.ts';
import { container, desiredPod } from './house.ts';

const desired = desiredPod({ containers: [container('a'), container('b')] });
const { uid } = desired;
const record = (name: string, id: string): ContainerStatus => ({ name, id: id as ContainerId }) as ContainerStatus;
const statusOf = (...containers: ContainerStatus[]): RuntimePodStatus => ({ containers }) as unknown as RuntimePodStatus;

function rig() {
  const r = { status: statusOf(record('a', 'a2'), record('b', 'b1'), record('a', 'a1')) as RuntimePodStatus | undefined, wanted: true };
  const [forgiven, woken]: [string[], string[]] = [[], []];
  const restarts = new Restarts({
    backoff: { delete: (key) => forgiven.push(key) },
    desired: () => (r.wanted ? desired : undefined),
    statusOf: () => r.status,
    wake: (u) => woken.push(u),
  });
  return { r, forgiven, woken, restarts };
}

test('the newest of a name is asked for, its back-off begins anew, and the pod is looked at', () => {
  const { restarts, forgiven, woken } = rig();
  assert.equal(restarts.ask(uid, ['a']), true);
  assert.deepEqual(
    ['a2', 'a1'].map((id) => restarts.isAsked(uid, record('a', id))),
    [true, false],
  );
  assert.deepEqual([restarts.isAsked(uid, record('b', 'b1')), restarts.isAsked('other' as PodUid, record('a', 'a2'))], [false, false]);
  assert.equal(restarts.isAsked(uid, undefined), false);
  assert.deepEqual([forgiven, woken], [[restartBackoffKey(desired, 'a')], [uid]]);
});

test('once another of its name is there it is done, and the others are not', () => {
  const { restarts } = rig();
  restarts.ask(uid, ['a']);
  restarts.ask(uid, ['b']);
  restarts.review(uid, statusOf(record('a', 'a3'), record('a', 'a2'), record('b', 'b1')));
  assert.deepEqual([restarts.isAsked(uid, record('a', 'a2')), restarts.isAsked(uid, record('b', 'b1'))], [false, true]);
  restarts.review(uid, statusOf());
  assert.equal(restarts.isAsked(uid, record('b', 'b1')), false);
});

test('what the runtime has not told of, or nobody wants any more, is not promised', () => {
  const { r, restarts, woken } = rig();
  assert.equal(restarts.ask(uid, ['a', 'c']), false);
  r.status = undefined;
  assert.equal(restarts.ask(uid, ['a']), false);
  r.wanted = false;
  assert.equal(restarts.ask(uid, ['a']), false);
  assert.deepEqual([woken, restarts.isAsked(uid, record('a', 'a2'))], [[], false]);
});

test('what was asked of pods that are gone is forgotten', () => {
  const { r, restarts } = rig();
  restarts.ask(uid, ['a']);
  r.wanted = false;
  restarts.ask('other' as PodUid, ['a']);
  assert.equal(restarts.isAsked(uid, record('a', 'a2')), false);
});
