import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PodManager } from '../../src/pod/manager.ts';
import { desiredPod } from './desiredPod.ts';

test('a pod is found by UID and by key, with its latest content, until it is removed', () => {
  const pods = new PodManager();
  const web = desiredPod('web', 'u1');
  const edited = desiredPod('web', 'u1', { graceSeconds: 5 });
  pods.set(web);
  pods.set(edited);
  assert.equal(pods.get(web.uid), edited);
  assert.equal(pods.byKey(web.key), edited);
  assert.deepEqual(pods.list(), [edited]);
  pods.remove(web.uid);
  pods.remove(web.uid);
  assert.equal(pods.get(web.uid), undefined);
  assert.equal(pods.byKey(web.key), undefined);
  assert.deepEqual(pods.list(), []);
});

test('the key names the newest instance, in whichever order the old one goes', () => {
  const pods = new PodManager();
  const old = desiredPod('web', 'u1');
  const next = desiredPod('web', 'u2');
  pods.set(old);
  pods.set(next);
  pods.remove(old.uid);
  assert.equal(pods.byKey(old.key), next);
});
