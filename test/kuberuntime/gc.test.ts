import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DesiredPod } from '../../src/api/desired.ts';
import type { PodUid } from '../../src/api/objects.ts';
import { RuntimeError } from '../../src/container/runtime.ts';
import { ContainerGc } from '../../src/kuberuntime/gc.ts';
import { silentLog } from '../../src/world/log.ts';
import { container, desiredPod, House } from './house.ts';

const gcOf = (house: House) =>
  new ContainerGc({ log: silentLog, runtime: house.runtime, logs: house.logs, mine: (labels) => labels['podsched.dev/managed'] === 'pi' });

/** A pod whose container has crashed `times` times and runs again. */
async function crashed(times: number): Promise<{ house: House; pod: DesiredPod }> {
  const house = new House();
  const pod = desiredPod({});
  await house.sync(pod);
  for (let i = 0; i < times; i++) {
    house.runtime.exit(house.id('c'), 1);
    await house.clock.advance(400_000);
    await house.inspect(pod);
    await house.clock.advance(400_000);
    await house.sync(pod);
    house.logs.files.add(`default_web_uid-1/c/${i}.log`);
  }
  house.deeds();
  return { house, pod };
}

test('of a living pod the newest ended container of each name is kept, with its log', async () => {
  const { house, pod } = await crashed(3);
  await gcOf(house).collectPod(pod.uid, 1, false);
  assert.deepEqual(house.deeds(), ['removeContainer c#0', 'removeContainer c#1']);
  assert.deepEqual([...house.logs.files], ['default_web_uid-1/c/2.log']);
  assert.deepEqual(house.runtime.running(), ['web/c']);
});

test('a container just created is not taken for garbage', async () => {
  const { house, pod } = await crashed(1);
  house.runtime.exit(house.id('c'), 1);
  house.runtime.failNext('startContainer', new RuntimeError('unknown', 'not yet'));
  await house.inspect(pod);
  await house.clock.advance(400_000);
  await house.sync(pod);
  assert.equal(house.runtime.find('web', 'c')?.state, 'created');
  house.deeds();
  await gcOf(house).collectPod(pod.uid, 1, false);
  assert.deepEqual(house.deeds(), ['removeContainer c#0']);
});

test('of a pod that is gone and has ended everything goes, the log folder last', async () => {
  const { house, pod } = await crashed(1);
  await house.drive(house.kube.killPod(pod, await house.inspect(pod), undefined));
  house.deeds();
  await gcOf(house).collectPod(pod.uid, 1, true);
  assert.deepEqual(house.deeds(), ['removeContainer c#0', 'removeContainer c#1', 'stopSandbox sandbox#0', 'removeSandbox sandbox#0']);
  assert.deepEqual([...house.logs.folders], []);
});

test('a container whose sandbox is gone goes too, with its logs', async () => {
  const { house, pod } = await crashed(0);
  house.runtime.exit(house.id('c'), 1);
  house.runtime.sandboxes.clear();
  house.deeds();
  await gcOf(house).collectPod(pod.uid, 1, true);
  assert.deepEqual(house.deeds(), ['removeContainer c#0']);
  assert.deepEqual([...house.logs.folders], []);
});

test('what still runs is never touched, nor its sandbox, nor its logs', async () => {
  const { house, pod } = await crashed(1);
  await gcOf(house).collectPod(pod.uid, 1, true);
  assert.deepEqual(house.deeds(), ['removeContainer c#0']);
  assert.equal(house.logs.folders.size, 1);
});

test('older dead sandboxes go when no container is left in them, the newest stays', async () => {
  const house = new House();
  const pod = desiredPod({});
  for (let i = 0; i < 3; i++) {
    await house.sync(pod);
    house.runtime.reboot();
    await house.clock.advance(400_000);
    await house.inspect(pod);
    await house.clock.advance(400_000);
  }
  house.deeds();
  await gcOf(house).collectPod(pod.uid, 1, false);
  assert.deepEqual(house.deeds(), [
    'removeContainer c#0',
    'removeContainer c#1',
    'stopSandbox sandbox#0',
    'removeSandbox sandbox#0',
    'stopSandbox sandbox#1',
    'removeSandbox sandbox#1',
  ]);
});

test('a container nobody knows the state of is ended before it is removed', async () => {
  const { house, pod } = await crashed(1);
  const record = [...house.runtime.containers.values()].find((c) => c.config.attempt === 0);
  assert.ok(record);
  record.state = 'unknown';
  await gcOf(house).collectPod(pod.uid, 0, false);
  assert.deepEqual(house.deeds(), ['stopContainer c#0 30s', 'removeContainer c#0']);
});

test('a container whose log cannot be removed stays; the rest is taken all the same', async () => {
  const { house, pod } = await crashed(2);
  house.logs.fail = new Error('EIO');
  assert.equal(await gcOf(house).collectPod(pod.uid, 0, false), false, 'something is left');
  assert.deepEqual(house.deeds(), []);
  house.logs.fail = undefined;
  house.runtime.failNext('removeContainer', new RuntimeError('unknown', 'busy'));
  assert.equal(await gcOf(house).collectPod(pod.uid, 0, false), false);
  assert.deepEqual(house.deeds(), ['removeContainer c#0', 'removeContainer c#1']);
  assert.equal(await gcOf(house).collectPod(pod.uid, 0, false), true, 'nothing is');
});

test('pods of somebody else are not even looked at', async () => {
  const { house, pod } = await crashed(2);
  const gc = new ContainerGc({ log: silentLog, runtime: house.runtime, logs: house.logs, mine: () => false });
  await gc.collectPod(pod.uid, 0, true);
  await gc.collect([await house.inspect(pod)], { keepPerName: 0, mayRemoveContent: () => true });
  assert.deepEqual(house.deeds(), []);
});

test('all pods together: only where there is garbage, and log folders that nobody knows any more', async () => {
  const { house, pod } = await crashed(2);
  const gone = desiredPod({ containers: [container('x')] }, { uid: 'uid-old', metadata: { name: 'old' } });
  await house.logs.ensure(gone);
  await house.logs.ensure(desiredPod({}, { uid: 'uid-held', metadata: { name: 'held' } }));
  const removable = new Set<PodUid>([gone.uid]);
  await gcOf(house).collect([await house.inspect(pod)], { keepPerName: 1, mayRemoveContent: (uid) => removable.has(uid) });
  assert.deepEqual(house.deeds(), ['removeContainer c#0']);
  assert.deepEqual([...house.logs.folders.keys()], ['default_web_uid-1', 'default_held_uid-held']);
  const before = house.runtime.calls.length;
  const clean = await house.inspect(pod);
  const inspected = house.runtime.calls.length;
  await gcOf(house).collect([clean], { keepPerName: 1, mayRemoveContent: () => false });
  assert.equal(house.runtime.calls.length, inspected, `no call where nothing is to be done (${before})`);
});
