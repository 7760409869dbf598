import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HeldBack } from '../../src/container/heldBack.ts';
import { container, desiredPod, House } from './house.ts';

const given = {
  devices: [{ containerPath: '/dev/ttyUSB0', hostPath: '/dev/ttyUSB0', permissions: 'rw' }],
  groups: [20],
  cdiDevices: [],
  annotations: { 'podsched.dev/devices': '[…]' },
};

test('a container has its devices, their groups beside those of the pod, and the mark of what it was made with; its sandbox has none', async () => {
  const house = new House();
  house.devices = (name) => (name === 'a' ? given : undefined);
  const desired = desiredPod({ containers: [container('a'), container('b')], securityContext: { supplementalGroups: [4, 20] } });
  await house.settle(desired);
  const [a, b] = ['a', 'b'].map((name) => house.runtime.find('web', name)?.config);
  assert.deepEqual(a?.devices, given.devices);
  assert.deepEqual(a?.supplementalGroups, [4, 20]);
  assert.equal(a?.annotations['podsched.dev/devices'], '[…]');
  assert.equal(a?.privileged, false);
  assert.deepEqual([b?.devices, b?.supplementalGroups, b?.annotations['podsched.dev/devices']], [undefined, [4, 20], undefined]);
});

test('a container waits for its device without a try: nothing is made, the back-off does not grow, others run', async () => {
  const house = new House();
  const message = 'no device of class serial is there (/dev/ttyUSB*)';
  house.devices = (name) => {
    if (name === 'a') throw new HeldBack('WaitingForDevice', message, 60_000);
    return undefined;
  };
  const desired = desiredPod({ containers: [container('a'), container('b')] });
  await house.sync(desired);
  for (let i = 0; i < 5; i++) {
    const { results, nextWaitMs } = await house.sync(desired);
    assert.deepEqual(
      results.map((r) => [r.target, r.error?.reason, r.error?.message]),
      [['a', 'WaitingForDevice', message]],
    );
    assert.equal(nextWaitMs, 60_000);
  }
  assert.deepEqual([house.runtime.find('web', 'a'), house.runtime.find('web', 'b')?.state], [undefined, 'running']);
  assert.deepEqual(house.backoff.snapshot(), {});
  house.devices = () => given;
  await house.settle(desired);
  assert.equal(house.runtime.find('web', 'a')?.config.attempt, 0);
});

test('exactly the container whose device is back is made anew, and it is told why', async () => {
  const house = new House();
  const desired = desiredPod({
    containers: [container('a'), container('b')],
    initContainers: [container('side', { restartPolicy: 'Always' })],
  });
  await house.settle(desired);
  const restarted = async (name: string): Promise<readonly string[]> => {
    house.deeds();
    house.back.clear();
    house.back.add(name);
    await house.sync(desired);
    house.back.clear();
    return house.deeds().filter((d) => /^(stop|start)Container/.test(d));
  };
  assert.deepEqual(await restarted('a'), ['stopContainer a#0 30s', 'startContainer a#1']);
  assert.deepEqual(await restarted('side'), ['stopContainer side#0 30s', 'startContainer side#1']);
  assert.deepEqual(
    house.events.filter((e) => e.includes('Killing')),
    [
      'a Normal Killing: Container a: a device it had lost is back, will be restarted',
      'side Normal Killing: Init container side: a device it had lost is back',
    ],
  );
  assert.deepEqual(house.backoff.snapshot(), {});
});
