import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DeviceHouse, podOf, wants } from './deviceHouse.ts';

test('a container is given the link it asked for and the node behind it, readable and writable, with the group of the node', () => {
  const house = new DeviceHouse();
  house.files.plug('/dev/ttyUSB0', 3, { gid: 20 });
  house.files.link('/dev/serial/by-id/usb-FTDI', '../../ttyUSB0');
  const given = house.ask(podOf('web', [wants('app', { byid: 1 })]));
  assert.ok(typeof given === 'object');
  assert.deepEqual(given.devices, [
    { containerPath: '/dev/serial/by-id/usb-FTDI', hostPath: '/dev/ttyUSB0', permissions: 'rw' },
    { containerPath: '/dev/ttyUSB0', hostPath: '/dev/ttyUSB0', permissions: 'rw' },
  ]);
  assert.deepEqual(given.groups, [20]);
  assert.deepEqual(JSON.parse(given.annotations['podsched.dev/devices'] ?? ''), [
    { class: 'byid', paths: ['/dev/serial/by-id/usb-FTDI'], node: '/dev/ttyUSB0', number: 'char 188:3', inode: 1 },
  ]);
});

test('root’s group is given to nobody, and a user who may not open a device is told so', async () => {
  const house = new DeviceHouse();
  house.files.plug('/dev/i2c-0', 0, { major: 89, gid: 0, mode: 0o660 });
  house.files.plug('/dev/i2c-1', 1, { major: 89, gid: 998, mode: 0o600 });
  house.files.plug('/dev/i2c-2', 2, { major: 89, gid: 998, mode: 0o666 });
  const pod = podOf('web', [wants('app', { i2c: 3 }, { securityContext: { runAsUser: 1000 } })]);
  assert.match(String(house.ask(pod)), /^WaitingForDevice: .*its group may follow$/, 'nobody knows since when they are there');
  await house.clock.advance(5_000);
  const given = house.ask(pod);
  assert.ok(typeof given === 'object');
  assert.deepEqual(given.groups, [998]);
  assert.deepEqual(house.events, [
    'web/app Warning DeviceNotAccessible: /dev/i2c-0 has mode 0660 and group 0: user 1000 may not open it',
    'web/app Warning DeviceNotAccessible: /dev/i2c-1 has mode 0600 and group 998: user 1000 may not open it',
  ]);
  house.events.length = 0;
  house.ask(podOf('web', [wants('app', { i2c: 3 })]));
  assert.deepEqual(house.events, [], 'root opens them all');
});

test('a device that has just come is not taken before its group is set, and taken without it after five seconds', async () => {
  const house = new DeviceHouse();
  const pod = podOf('web', [wants('app', { i2c: 1 }, { securityContext: { runAsUser: 1000 } })]);
  assert.match(String(house.ask(pod)), /^WaitingForDevice: 1 wanted: /);
  house.files.plug('/dev/i2c-0', 0, { major: 89, gid: 0 });
  assert.deepEqual(await house.woke(), ['web']);
  assert.equal(
    house.ask(pod),
    'WaitingForDevice: /dev/i2c-0 has mode 0660 and group 0: user 1000 may not open it: it may have just come, and its group may follow',
  );
  assert.deepEqual(house.events, []);
  house.files.group('/dev/i2c-0', 998);
  assert.deepEqual(await house.woke(), ['web'], 'the group is news');
  const given = house.ask(pod);
  assert.ok(typeof given === 'object');
  assert.deepEqual(given.groups, [998]);

  const closed = podOf('closed', [wants('app', { i2c: 1 }, { securityContext: { runAsUser: 1000 } })]);
  house.files.plug('/dev/i2c-1', 1, { major: 89, gid: 0, mode: 0o600 });
  await house.woke();
  assert.match(String(house.ask(closed)), /its group may follow$/);
  await house.clock.advance(5_000);
  assert.ok(typeof house.ask(closed) === 'object', 'its group is what it is');
  assert.equal(house.events.length, 1);
});

test('the user of an image counts where the manifest names none', async () => {
  const house = new DeviceHouse();
  const pod = podOf('web', [wants('app', { i2c: 1 })]);
  house.files.plug('/dev/i2c-0', 0, { major: 89, gid: 0 });
  assert.match(String(house.ask(pod, 'app', 'node')), /user node may not open it: it may have just come/);
  assert.ok(typeof house.ask(pod, 'app', 'root') === 'object');
  await house.clock.advance(5_000);
  assert.ok(typeof house.ask(pod, 'app', 'node') === 'object');
  assert.deepEqual(house.events, ['web/app Warning DeviceNotAccessible: /dev/i2c-0 has mode 0660 and group 0: user node may not open it']);
});

test('only what is closed is waited for', () => {
  const house = new DeviceHouse();
  const user = { securityContext: { runAsUser: 1000 } };
  house.files.plug('/dev/ttyUSB0', 0, { gid: 20 });
  assert.ok(typeof house.ask(podOf('web', [wants('app', { serial: 1 }, user)])) === 'object', 'its group is there');
});

test('who runs goes on until what has come back is open to it, or has had its time', async () => {
  for (const groupComes of [true, false]) {
    const house = new DeviceHouse();
    const pod = podOf('web', [wants('app', { serial: 1 }, { securityContext: { runAsUser: 1000 } })]);
    house.files.plug('/dev/ttyUSB0', 0, { gid: 20 });
    house.start(pod);
    house.files.remove('/dev/ttyUSB0');
    await house.woke();
    assert.equal(house.restarts(pod), false);
    house.files.plug('/dev/ttyUSB0', 0, { gid: 0 });
    assert.deepEqual(await house.woke(), ['web']);
    assert.equal(house.restarts(pod), false, 'it could not be started yet');
    if (groupComes) {
      house.files.group('/dev/ttyUSB0', 20);
      assert.deepEqual(await house.woke(), ['web']);
    } else {
      house.woken.length = 0;
      await house.clock.advance(5_000);
      assert.deepEqual(house.woken, [pod.uid], 'it is looked at again when the time is over');
    }
    assert.equal(house.restarts(pod), true);
    assert.ok(typeof house.ask(pod) === 'object');
  }
});

test('who asks for nothing is given nothing, and nothing is watched for him', () => {
  const house = new DeviceHouse();
  const plain = podOf('web', [wants('app', {})]);
  assert.equal(house.ask(plain), undefined);
  house.manager.review(plain, { containers: [] });
  assert.deepEqual(house.files.watched(), []);
});

test('names of the Container Device Interface go on to the runtime, in both ways that it reads them', () => {
  const house = new DeviceHouse();
  const pod = podOf('web', [wants('app', {})]);
  const annotations = { 'cdi.k8s.io/a': 'vendor.com/gpu=0,vendor.com/gpu=1', 'cdi.k8s.io/b': 'vendor.com/gpu=1', other: 'x' };
  const given = house.ask({ ...pod, pod: { ...pod.pod, metadata: { ...pod.pod.metadata, annotations } } });
  assert.ok(typeof given === 'object');
  assert.deepEqual(given.cdiDevices, ['vendor.com/gpu=0', 'vendor.com/gpu=1']);
  assert.deepEqual(Object.keys(given.annotations), ['cdi.k8s.io/a', 'cdi.k8s.io/b']);
});

test('a device is one pod’s at a time, until the pod has ended', () => {
  const house = new DeviceHouse();
  house.files.plug('/dev/ttyUSB0', 0);
  house.files.plug('/dev/ttyUSB1', 1);
  const [a, b, c] = ['a', 'b', 'c'].map((name) => podOf(name, [wants('app', { serial: 1 })])) as [
    ReturnType<typeof podOf>,
    ReturnType<typeof podOf>,
    ReturnType<typeof podOf>,
  ];
  assert.deepEqual(house.start(a), ['/dev/ttyUSB0']);
  assert.deepEqual(house.start(b), ['/dev/ttyUSB1']);
  const busy = 'WaitingForDevice: 1 of device class serial wanted: 2 are there, used by pod default/b and default/a (/dev/ttyUSB*)';
  assert.equal(house.ask(c), busy);
  house.exit(a);
  assert.equal(house.ask(c), busy, 'a container that crashed keeps what it had for its next start');
  house.newAgent();
  assert.equal(house.ask(c), busy, 'for the next agent it stands on the containers');
  house.ended.add(a.uid);
  house.manager.freed();
  assert.deepEqual(house.woken, [c.uid]);
  assert.deepEqual(house.start(c), ['/dev/ttyUSB0']);
});

test('what is promised to a container that is being made is nobody else’s, and another class of the same device is none either', () => {
  const house = new DeviceHouse();
  house.files.plug('/dev/ttyUSB0', 0);
  house.files.link('/dev/serial/by-id/x', '../../ttyUSB0');
  assert.equal(typeof house.ask(podOf('a', [wants('app', { serial: 1 })])), 'object');
  assert.match(String(house.ask(podOf('b', [wants('app', { byid: 1 })]))), /^WaitingForDevice: .*1 is there, used by pod default\/a /);
});

test('containers of a pod have different devices, and take over those of an init container that has done its work', () => {
  const house = new DeviceHouse();
  for (const n of [0, 1, 2]) house.files.plug(`/dev/ttyUSB${n}`, n);
  const pod = podOf('web', [wants('app', { serial: 2 }), wants('second', { serial: 1 })], {
    initContainers: [wants('init', { serial: 3 })],
  });
  assert.equal(house.start(pod, 'init').length, 3);
  assert.match(String(house.ask(pod)), /^WaitingForDevice/, 'it still runs');
  house.exit(pod, 'init');
  assert.deepEqual(house.start(pod), ['/dev/ttyUSB0', '/dev/ttyUSB1']);
  assert.deepEqual(house.start(pod, 'second'), ['/dev/ttyUSB2']);
  house.exit(pod);
  assert.deepEqual(house.start(pod), ['/dev/ttyUSB0', '/dev/ttyUSB1'], 'and again what it had');
});

test('an absent device is waited for by name, without polling, and its coming wakes those who want it and nobody else', async () => {
  const house = new DeviceHouse();
  const pod = podOf('web', [wants('app', { byid: 1 })]);
  const other = podOf('other', [wants('app', { i2c: 1 })]);
  assert.equal(house.ask(pod), 'WaitingForDevice: 1 wanted: no device of class byid is there (/dev/serial/by-id/*)');
  house.ask(other);
  assert.deepEqual(house.files.watched(), ['/dev']);
  assert.equal(house.clock.sleeping, 0);
  house.files.plug('/dev/ttyUSB0', 0);
  house.files.link('/dev/serial/by-id/x', '../../ttyUSB0');
  assert.deepEqual(await house.woke(), ['web']);
  assert.deepEqual(house.start(pod), ['/dev/serial/by-id/x', '/dev/ttyUSB0']);
});

test('folders that come one in the other are seen to their end, also when nothing is said of the inner one', async () => {
  const house = new DeviceHouse();
  house.classes = { deep: ['/dev/a/b/c/*'] };
  const pod = podOf('web', [wants('app', { deep: 1 })]);
  house.ask(pod);
  house.files.plug('/dev/a/b/c/x', 0);
  assert.deepEqual(await house.woke(), ['web']);
  assert.deepEqual(house.files.watched(), ['/dev', '/dev/a', '/dev/a/b', '/dev/a/b/c']);
});

test('a class that the configuration has not, or not any more, is named', () => {
  const house = new DeviceHouse();
  const pod = podOf('web', [wants('app', { camera: 1 })]);
  assert.equal(house.ask(pod), 'WaitingForDevice: 1 wanted: the configuration has no device class camera');
  house.files.plug('/dev/video0', 0, { major: 81 });
  house.classes = { camera: ['/dev/video*'] };
  house.manager.freed();
  assert.ok(house.woken.includes(pod.uid));
  assert.deepEqual(house.start(pod), ['/dev/video0']);
});

test('a device that is gone is told of its container, which is started again when it is back under another number', async () => {
  const house = new DeviceHouse();
  house.files.plug('/dev/ttyUSB0', 0);
  house.files.link('/dev/serial/by-id/x', '../../ttyUSB0');
  const pod = podOf('web', [wants('app', { byid: 1 })]);
  house.files.plug('/dev/i2c-1', 1, { major: 89 });
  const other = podOf('other', [wants('app', { i2c: 1 })]);
  house.start(pod);
  house.start(other);
  assert.equal(house.restarts(pod), false);

  house.files.remove('/dev/serial');
  house.files.remove('/dev/ttyUSB0');
  assert.deepEqual(await house.woke(), ['web']);
  assert.equal(house.restarts(pod), false, 'it goes on');
  assert.deepEqual(house.events, [
    'web/app Warning DeviceGone: /dev/serial/by-id/x (class byid, /dev/ttyUSB0) is gone; the container goes on without it, and starts again when it is back',
  ]);
  assert.deepEqual(house.manager.gone(pod.uid), [
    { container: 'app', deviceClass: 'byid', paths: ['/dev/serial/by-id/x', '/dev/ttyUSB0'] },
  ]);
  assert.deepEqual(house.manager.gone(other.uid), []);

  house.files.plug('/dev/ttyUSB1', 1);
  house.files.link('/dev/serial/by-id/x', '../../ttyUSB1');
  assert.deepEqual(await house.woke(), ['web']);
  assert.equal(house.restarts(pod), true);
  assert.equal(house.restarts(other), false);
  house.exit(pod);
  assert.deepEqual(house.start(pod), ['/dev/serial/by-id/x', '/dev/ttyUSB1']);
  assert.equal(house.restarts(pod), false);
  assert.deepEqual(house.manager.gone(pod.uid), []);
  assert.equal(house.events.length, 1);
});

test('gone and back under the same number between two looks is another device, for what is open on the old one is dead', async () => {
  const house = new DeviceHouse();
  house.files.plug('/dev/ttyUSB0', 0);
  const pod = podOf('web', [wants('app', { serial: 1 })]);
  house.start(pod);
  assert.equal(house.restarts(pod), false);
  house.files.remove('/dev/ttyUSB0');
  house.files.plug('/dev/ttyUSB0', 0);
  assert.deepEqual(await house.woke(), ['web']);
  assert.equal(house.restarts(pod), true);
});

test('a change of permissions is no loss', async () => {
  const house = new DeviceHouse();
  house.files.plug('/dev/ttyUSB0', 0);
  const pod = podOf('web', [wants('app', { serial: 1 })]);
  house.start(pod);
  house.files.group('/dev/ttyUSB0', 5);
  await house.woke();
  assert.equal(house.restarts(pod), false);
  assert.deepEqual(house.events, []);
});

test('a running container is not moved to a member that was there all along, also not by the next agent; it is to one that comes', async () => {
  const house = new DeviceHouse();
  house.files.plug('/dev/ttyUSB0', 0);
  house.files.plug('/dev/ttyUSB1', 1);
  const pod = podOf('web', [wants('app', { serial: 1 })]);
  house.start(pod);
  assert.equal(house.restarts(pod), false);
  house.files.remove('/dev/ttyUSB0');
  await house.woke();
  assert.equal(house.restarts(pod), false);
  await house.manager.flush();
  await house.newAgent().load();
  assert.equal(house.restarts(pod), false);
  assert.equal(house.events.length, 1, 'told once');
  house.files.plug('/dev/ttyUSB2', 2);
  assert.deepEqual(await house.woke(), ['web']);
  assert.equal(house.restarts(pod), true);
});

test('what was unplugged and plugged while no agent ran is found by its container', async () => {
  const house = new DeviceHouse();
  house.files.plug('/dev/ttyUSB0', 0);
  const pod = podOf('web', [wants('app', { serial: 1 })]);
  house.start(pod);
  house.files.remove('/dev/ttyUSB0');
  house.files.plug('/dev/ttyUSB1', 1);
  await house.newAgent().load();
  assert.equal(house.restarts(pod), true);
  house.exit(pod);
  assert.deepEqual(house.start(pod), ['/dev/ttyUSB1']);
});

test('an agent that starts anew restarts nobody', async () => {
  const house = new DeviceHouse();
  house.files.plug('/dev/ttyUSB0', 0);
  const pod = podOf('web', [wants('app', { serial: 1 })]);
  house.start(pod);
  await house.newAgent().load();
  assert.equal(house.restarts(pod), false);
  // a class that is written otherwise, or not at all, takes nothing away
  house.classes = {};
  house.manager.freed();
  assert.equal(house.restarts(pod), false);
  assert.deepEqual(house.events, []);
});

test('what comes back is kept for the container that lost it', async () => {
  const house = new DeviceHouse();
  house.files.plug('/dev/ttyUSB0', 0);
  const [pod, late] = [podOf('web', [wants('app', { serial: 1 })]), podOf('late', [wants('app', { serial: 1 })])];
  house.start(pod);
  house.files.remove('/dev/ttyUSB0');
  house.ask(late);
  await house.woke();
  house.files.plug('/dev/ttyUSB7', 7);
  await house.woke();
  assert.match(String(house.ask(late)), /^WaitingForDevice/);
  assert.equal(house.restarts(pod), true);
  house.exit(pod);
  assert.match(String(house.ask(late)), /^WaitingForDevice/, 'also while it is between two starts');
  assert.deepEqual(house.start(pod), ['/dev/ttyUSB7']);
  house.files.plug('/dev/ttyUSB8', 8);
  assert.ok((await house.woke()).includes('late'));
  assert.deepEqual(house.start(late), ['/dev/ttyUSB8']);
});

test('of two devices both must be back: a restart with one of them would only wait', async () => {
  const house = new DeviceHouse();
  house.files.plug('/dev/ttyUSB0', 0);
  house.files.plug('/dev/ttyUSB1', 1);
  const pod = podOf('web', [wants('app', { serial: 2 })]);
  house.start(pod);
  house.restarts(pod);
  house.files.remove('/dev/ttyUSB0');
  await house.woke();
  house.files.remove('/dev/ttyUSB1');
  await house.woke();
  assert.equal(house.events.length, 2, 'each is told');
  house.files.plug('/dev/ttyUSB4', 4);
  await house.woke();
  assert.equal(house.restarts(pod), false);
  house.files.plug('/dev/ttyUSB5', 5);
  await house.woke();
  assert.equal(house.restarts(pod), true);
});

test('what runs once is not run again for a device: restartPolicy Never; its sidecar is', async () => {
  const house = new DeviceHouse();
  house.files.plug('/dev/ttyUSB0', 0);
  house.files.plug('/dev/ttyUSB1', 1);
  const pod = podOf('job', [wants('app', { serial: 1 })], {
    restartPolicy: 'Never',
    initContainers: [wants('side', { serial: 1 }, { restartPolicy: 'Always' })],
  });
  house.start(pod, 'side');
  house.start(pod);
  house.restarts(pod);
  for (const n of [0, 1]) house.files.remove(`/dev/ttyUSB${n}`);
  await house.woke();
  for (const n of [0, 1]) house.files.plug(`/dev/ttyUSB${n}`, n);
  await house.woke();
  assert.equal(house.restarts(pod), false);
  assert.equal(house.restarts(pod, 'side'), true);
});

test('a gate for a device is open while one of its class is there, and its coming wakes the pod', async () => {
  const house = new DeviceHouse();
  const plain = podOf('web', [wants('app', {})]);
  const annotations = { 'podsched.dev/wait-for': 'device:serial' };
  const pod = { ...plain, pod: { ...plain.pod, metadata: { ...plain.pod.metadata, annotations } } };
  assert.equal(house.manager.gate(pod, 'serial'), 'no device of class serial is there (/dev/ttyUSB*)');
  house.files.plug('/dev/ttyUSB0', 0);
  assert.deepEqual(await house.woke(), ['web']);
  assert.equal(house.manager.gate(pod, 'serial'), undefined);
});

test('admission counts what is there, whoever has it', () => {
  const house = new DeviceHouse();
  assert.equal(house.manager.present('serial'), 0);
  house.files.plug('/dev/ttyUSB0', 0);
  house.start(podOf('web', [wants('app', { serial: 1 })]));
  assert.equal(house.manager.present('serial'), 1);
  assert.equal(house.manager.present('unknown'), 0);
});

test('pods that are not known any more are forgotten, with what was watched for them', () => {
  const house = new DeviceHouse();
  const pod = podOf('web', [wants('app', { serial: 1 })]);
  house.ask(pod);
  assert.deepEqual(house.files.watched(), ['/dev']);
  house.manager.retain(new Set([pod.uid]));
  assert.deepEqual(house.files.watched(), ['/dev']);
  house.manager.retain(new Set());
  assert.deepEqual(house.files.watched(), []);
});

test('a device that becomes free without a word is found by housekeeping, which wakes who waits once', () => {
  const house = new DeviceHouse();
  house.files.plug('/dev/ttyUSB0', 0);
  const [a, b] = [podOf('a', [wants('app', { serial: 1 })]), podOf('b', [wants('app', { serial: 1 })])];
  house.start(a);
  house.ask(b);
  const known = new Set([a.uid, b.uid]);
  house.manager.retain(known);
  house.woken.length = 0;
  house.manager.retain(known);
  assert.deepEqual(house.woken, []);
  house.exit(a);
  house.ended.add(a.uid);
  house.manager.retain(known);
  house.manager.retain(known);
  assert.deepEqual(house.woken, [b.uid]);
});

test('an exhausted inotify is a condition of the node, and devices are found by looking', async () => {
  const house = new DeviceHouse();
  house.files.refuse = Object.assign(new Error('none'), { code: 'ENOSPC' });
  const pod = podOf('web', [wants('app', { serial: 1 })]);
  house.ask(pod);
  assert.equal(house.conditionChanges, 1);
  assert.deepEqual(house.manager.condition(), {
    reason: 'WatchDegraded',
    message: 'cannot watch /dev (ENOSPC): devices are looked for every 20 s',
  });
  house.files.plug('/dev/ttyUSB0', 0);
  await house.clock.advance(20_000);
  assert.deepEqual(house.woken, [pod.uid]);
});

test('a mark that somebody else wrote is not believed further than it can be read', () => {
  const house = new DeviceHouse();
  house.files.plug('/dev/ttyUSB0', 0);
  const pod = podOf('web', [wants('app', { serial: 1 })]);
  house.start(podOf('other', [wants('app', {})]));
  const marks = ['x', '{}', '[1, null]', '[{"class":"serial","paths":[],"node":"/dev/../etc/passwd","number":"char 188:0","inode":1}]'];
  for (const mark of marks) {
    house.records = house.records.map((r) => ({ ...r, annotations: { 'podsched.dev/devices': mark } }));
    assert.equal(typeof house.ask(pod), 'object', mark);
  }
});
