/** One place, spelled in three ways: for us, for the driver, for the runtime. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CgroupfsDriver, SystemdDriver } from 'cgroup-ts';
import type { PodUid } from '../../src/api/objects.ts';
import { podGroup, qosClasses, rootName, sandboxParent, uidOf } from '../../src/cm/names.ts';

const uid = '6f1c2a5e-8d2b-4f0e-9a57-0b7a2f6f9d11' as PodUid;

test('the runtime is given the very path at which the driver makes the pod’s cgroup', () => {
  for (const driver of [new CgroupfsDriver({ root: '/nowhere' }), new SystemdDriver({ root: '/nowhere' })]) {
    for (const text of ['', '/', '/edge', 'edge/my-pods/']) {
      const root = rootName(text);
      for (const qos of qosClasses) {
        assert.equal(
          sandboxParent({ driver: driver.kind, root, perQos: true }, qos, uid),
          driver.cgroupParent(podGroup(root, qos, uid)),
          `${driver.kind} ${text} ${qos}`,
        );
      }
    }
  }
});

test('without cgroups per QoS class the place is the root, or the runtime’s own choice', () => {
  const parent = (driver: 'cgroupfs' | 'systemd', root: string) =>
    sandboxParent({ driver, root: rootName(root), perQos: false }, 'Burstable', uid);
  assert.equal(parent('cgroupfs', ''), '');
  assert.equal(parent('systemd', ''), '/system.slice');
  assert.equal(parent('cgroupfs', '/edge/pods'), '/edge/pods');
  assert.equal(parent('systemd', 'edge/pods'), '/edge.slice/edge-pods.slice');
});

test('whose cgroup it is can be read back from its name', () => {
  assert.equal(uidOf(podGroup([], 'BestEffort', uid)), uid);
  for (const name of [['kubepods', 'burstable'], ['kubepods', 'pod'], []]) assert.equal(uidOf(name), undefined);
});
