import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyText } from '../../src/api/objects.ts';
import { HeldBack } from '../../src/container/heldBack.ts';
import { desiredPod } from '../pod/desiredPod.ts';
import { GateHouse, waitingPod } from './house.ts';

test('a pod without gates is held by nothing, and nothing is written', async () => {
  const house = new GateHouse();
  assert.equal(await house.gates.check(desiredPod('web', 'u1')), undefined);
  assert.equal(await house.gates.check(waitingPod('web', '')), undefined);
  await house.gates.flush();
  assert.deepEqual([[...house.store.entries.keys()], house.events], [[], []]);
});

const opened: readonly (readonly [string, (house: GateHouse) => void, string, string])[] = [
  ['mount:/mnt/ssd', (h) => h.facts.mounted.add('/mnt/ssd'), 'WaitingForMount', '/mnt/ssd is not a mount point'],
  ['pod/default/db=Ready', (h) => h.pods.set('Pod/default/db', 'ready'), 'WaitingForPod', 'pod default/db does not exist'],
  ['time-sync', (h) => Object.assign(h.facts, { synced: true }), 'WaitingForTimeSync', 'the clock of the node is not synchronized yet'],
  ['network', (h) => Object.assign(h.facts, { network: true }), 'WaitingForNetwork', 'the node has no default route yet'],
];
for (const [gate, open, reason, message] of opened) {
  test(`${gate} holds the pod with ${reason}, told once, until it is so`, async () => {
    const house = new GateHouse();
    const pod = waitingPod('web', gate);
    const retryAfterMs = gate.startsWith('pod/') ? {} : { retryAfterMs: 5000 };
    for (let i = 0; i < 3; i++) assert.deepEqual(await house.gates.check(pod), { reason, message, ...retryAfterMs });
    assert.deepEqual(house.events, [`web Normal ${reason}: ${message}`]);
    open(house);
    assert.equal(await house.gates.check(pod), undefined);
    await house.gates.flush();
    assert.deepEqual(await house.store.get('gates'), {});
  });
}

test('a gate for a device holds the pod until one of its class is there; who says so wakes it', async () => {
  const house = new GateHouse();
  const pod = waitingPod('web', 'device:camera', '1m');
  const message = 'no device of class camera is there (/dev/video*)';
  assert.deepEqual(await house.gates.check(pod), { reason: 'WaitingForDevice', message, retryAfterMs: 60_000 });
  assert.deepEqual(await house.gates.check(waitingPod('other', 'device:camera')), { reason: 'WaitingForDevice', message });
  assert.deepEqual(house.events, [`web Normal WaitingForDevice: ${message}`, `other Normal WaitingForDevice: ${message}`]);
  house.devices.add('camera');
  assert.equal(await house.gates.check(pod), undefined);
});

test('of several gates the first closed one is told, in the order they are written', async () => {
  const house = new GateHouse();
  const pod = waitingPod('web', 'network, mount:/mnt/ssd, pod/default/db=Ready');
  assert.equal((await house.gates.check(pod))?.reason, 'WaitingForNetwork');
  house.facts.network = true;
  assert.equal((await house.gates.check(pod))?.reason, 'WaitingForMount');
  house.facts.mounted.add('/mnt/ssd');
  assert.equal((await house.gates.check(pod))?.reason, 'WaitingForPod');
  house.facts.network = false;
  house.pods.set('Pod/default/db', 'ready');
  assert.equal((await house.gates.check(pod))?.reason, 'WaitingForNetwork', 'what was open may close again before the start');
  assert.equal(house.events.length, 4);
});

test('after its time-out a pod is started anyway, with an event, and is held no more', async () => {
  const house = new GateHouse();
  const pod = waitingPod('web', 'mount:/mnt/ssd', '12s');
  assert.equal((await house.gates.check(pod))?.retryAfterMs, 5000);
  await house.clock.advance(10_000);
  assert.equal((await house.gates.check(pod))?.retryAfterMs, 2000, 'looked at again at that very moment');
  house.clock.setWall(0);
  await house.clock.advance(2_000);
  for (let i = 0; i < 2; i++) assert.equal(await house.gates.check(pod), undefined);
  assert.deepEqual(house.events.slice(1), ['web Warning WaitTimeout: started after waiting 12s, although /mnt/ssd is not a mount point']);
});

test('the time counts from when the instance was first held, over agent restarts; a new boot counts anew', async () => {
  const house = new GateHouse();
  const pod = waitingPod('web', 'mount:/mnt/ssd', '1m');
  await house.gates.check(pod);
  await house.gates.flush();
  await house.clock.advance(50_000);
  await house.newAgent().load();
  assert.ok(await house.gates.check(pod));
  await house.clock.advance(10_000);
  assert.equal(await house.gates.check(pod), undefined);
  await house.gates.flush();
  await house.newAgent().load();
  assert.equal(await house.gates.check(pod), undefined, 'it is over for the next agent as well');
  house.store.entries.clear(); // runDir of another boot
  await house.newAgent().load();
  assert.equal((await house.gates.check(pod))?.reason, 'WaitingForMount');
});

test('what is stored is written once as long as nothing but the cause changes', async () => {
  const house = new GateHouse();
  let writes = 0;
  const put = house.store.put.bind(house.store);
  house.store.put = async (key, value) => {
    writes++;
    await put(key, value);
  };
  const pod = waitingPod('web', 'network, mount:/mnt/ssd');
  for (let i = 0; i < 5; i++) await house.gates.check(pod);
  house.facts.network = true;
  for (let i = 0; i < 5; i++) await house.gates.check(pod);
  await house.gates.flush();
  assert.equal(writes, 1);
});

test('stored nonsense and a store that fails are no reason to hold or to start anything', async () => {
  const house = new GateHouse();
  house.store.entries.set('gates', '{"uid-web":{"since":"x"},"a":null,"uid-late":{"since":9e15}}');
  await house.gates.load();
  house.store.put = async () => {
    throw new Error('full');
  };
  assert.ok(await house.gates.check(waitingPod('web', 'mount:/mnt/ssd', '1s')));
  assert.ok(await house.gates.check(waitingPod('late', 'mount:/mnt/ssd', '1s')));
  await house.gates.flush();
});

test('a pod that is ready wakes who waits for it, and nobody else; also when it became so during the look', async () => {
  const house = new GateHouse();
  const a = waitingPod('a', 'pod/default/db=Ready');
  await house.gates.check(a);
  await house.gates.check(waitingPod('b', 'mount:/mnt/ssd, pod/default/db=Ready'));
  await house.gates.check(waitingPod('c', 'mount:/mnt/ssd'));
  const told = (name: string, state: 'ready' | 'not ready'): void => {
    house.pods.set(`Pod/default/${name}`, state);
    house.gates.told(`Pod/default/${name}` as KeyText);
  };
  told('other', 'ready');
  assert.deepEqual(house.woken, []);
  told('db', 'not ready');
  assert.deepEqual(house.woken.splice(0), ['uid-a'], 'what it waits for exists now, which it says; the other waits for its disk');
  assert.equal((await house.gates.check(a))?.message, 'pod default/db is not ready');
  told('db', 'not ready');
  assert.deepEqual(house.woken, []);
  told('db', 'ready');
  assert.deepEqual(house.woken, ['uid-a', 'uid-b']);
  house.woken.length = 0;
  house.facts.mounted.add('/x');
  const look = house.gates.check(waitingPod('d', 'mount:/x, pod/default/late=Ready'));
  told('late', 'ready');
  await look;
  assert.deepEqual(house.woken, ['uid-d']);
});

test('pods that wait for one another are refused a start with the way, whatever their time-out says', async () => {
  const house = new GateHouse();
  const pods = [
    waitingPod('a', 'pod/default/b=Ready', '1s'),
    waitingPod('b', 'pod/default/c=Ready'),
    waitingPod('c', 'pod/default/a=Ready'),
    waitingPod('d', 'pod/default/a=Ready'),
  ];
  for (const pod of pods) house.manifests.set(pod.key, pod);
  const [a, , c, d] = pods as [(typeof pods)[0], (typeof pods)[0], (typeof pods)[0], (typeof pods)[0]];
  const text = 'default/a waits for default/b waits for default/c waits for default/a: none of them can ever start';
  assert.deepEqual(await house.gates.check(a), { reason: 'WaitCycle', message: text, retryAfterMs: 5000 });
  await house.clock.advance(10_000);
  assert.equal((await house.gates.check(a))?.reason, 'WaitCycle');
  assert.equal((await house.gates.check(c))?.reason, 'WaitCycle');
  assert.equal((await house.gates.check(d))?.reason, 'WaitingForPod', 'it only leads to the cycle');
  house.manifests.set(c.key, waitingPod('c', 'network'));
  assert.equal(await house.gates.check(a), undefined, 'cut, and its time has long passed');
});

test('a path behind a mount gate is held back while nothing is mounted there, by a link too', async () => {
  const house = new GateHouse();
  const pod = waitingPod('web', 'network, mount:/mnt/ssd');
  const isHeld = (path: string) =>
    house.gates.checkPath(pod, path).then(
      () => false,
      (e) => e instanceof HeldBack && e.reason === 'WaitingForMount' && e.message === '/mnt/ssd is not a mount point',
    );
  house.facts.links.set('/data', '/mnt/ssd/data');
  for (const path of ['/mnt/ssd', '/mnt/ssd/', '/mnt/ssd/data', '/mnt//ssd/data', '/data']) assert.ok(await isHeld(path), path);
  for (const path of ['/mnt', '/mnt/ssd2', '/mnt/ssd2/data', '/srv']) assert.ok(!(await isHeld(path)), path);
  house.facts.mounted.add('/mnt/ssd');
  for (const path of ['/mnt/ssd/data', '/data']) assert.ok(!(await isHeld(path)), path);
  house.facts.mounted.clear();
  assert.ok(await isHeld('/data'), 'a disk that went away is away');
});

test('a pod that was started by its time-out is let through to what is there', async () => {
  const house = new GateHouse();
  const pod = waitingPod('web', 'mount:/mnt/ssd', '1s');
  await house.gates.check(pod);
  await house.clock.advance(1_000);
  assert.equal(await house.gates.check(pod), undefined);
  await house.gates.checkPath(pod, '/mnt/ssd/data');
  house.gates.retain(new Set());
  await assert.rejects(house.gates.checkPath(pod, '/mnt/ssd/data'), HeldBack);
});
