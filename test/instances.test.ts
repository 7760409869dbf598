import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../src/api/objects.ts';
import { Instances } from '../src/instances.ts';
import { PodManager } from '../src/pod/manager.ts';
import { FakeClock } from './fakes/fakeClock.ts';
import { desiredPod } from './pod/desiredPod.ts';

const [u1, u2] = ['u1' as PodUid, 'u2' as PodUid];
const rig = () => {
  const clock = new FakeClock();
  const pods = new PodManager();
  return { clock, pods, instances: new Instances(clock, pods) };
};

test('an instance is known from its acceptance to the end of its worker, desired only until its removal', () => {
  const { pods, instances } = rig();
  const web = desiredPod('web', 'u1');
  instances.set(web);
  assert.equal(pods.get(u1), web);
  instances.remove(u1);
  assert.equal(pods.get(u1), undefined);
  assert.equal(instances.get(u1), web, 'it may still be ending');
  assert.deepEqual(instances.uids(), [u1]);
  assert.equal(instances.forget(u1), web);
  assert.equal(instances.get(u1), undefined);
  assert.deepEqual(instances.keys(), []);
});

test('of one key the desired instance counts, else the one that is ending', () => {
  const { instances } = rig();
  const old = desiredPod('web', 'u1');
  const now = desiredPod('web', 'u2');
  instances.set(old);
  instances.remove(u1);
  assert.equal(instances.byKey(old.key), old);
  instances.set(now);
  assert.equal(instances.byKey(old.key), now);
});

test('telling is first once in a run, also when the words of the pod change; nobody tells of the unknown', () => {
  const { instances } = rig();
  instances.set(desiredPod('web', 'u1'));
  assert.equal(instances.wasTold(u1), false);
  assert.equal(instances.tell(u1), true);
  instances.set(desiredPod('web', 'u1'));
  assert.equal(instances.tell(u1), false);
  assert.equal(instances.wasTold(u1), true);
  assert.equal(instances.tell(u2), false);
});

test('a wait ends with the removal', () => {
  const { clock, instances } = rig();
  instances.set(desiredPod('web', 'u1'));
  instances.waits(u1, 10_000);
  assert.equal(instances.secondsToRetry(u1), 10);
  instances.remove(u1);
  assert.equal(instances.secondsToRetry(u1), undefined);
  instances.waits(u2, 1);
  assert.equal(instances.secondsToRetry(u2), undefined);
  assert.equal(clock.sleeping, 0, 'it only remembers the moment');
});

test('the wait counts down on the monotonic clock, and nothing to wait for is no number', async () => {
  const { clock, instances } = rig();
  instances.set(desiredPod('web', 'u1'));
  instances.waits(u1, 300_000);
  await clock.advance(60_000);
  clock.setWall(0);
  assert.equal(instances.secondsToRetry(u1), 240);
  instances.waits(u1, undefined);
  assert.equal(instances.secondsToRetry(u1), undefined);
});
