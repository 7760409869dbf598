import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DeviceWatch } from '../../src/cm/deviceWatch.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { FakeDeviceFiles } from '../fakes/fakeDeviceFiles.ts';

const interest = new Map([['/dev', [/^ttyUSB/]]]);

function rig() {
  const clock = new FakeClock();
  const files = new FakeDeviceFiles();
  const told: (string | undefined)[] = [];
  const rig = { clock, files, told, looks: 0 };
  const watch = new DeviceWatch({
    ...{ clock, files },
    look: () => {
      rig.looks++;
      watch.set(interest);
    },
    degraded: (reason) => told.push(reason),
  });
  return Object.assign(rig, { watch });
}

test('a device that comes is looked at once it is quiet: udev gives it its group and its links one after the other', async () => {
  const r = rig();
  assert.equal(r.watch.set(interest), true);
  assert.equal(r.watch.set(interest), false);
  r.files.plug('/dev/ttyUSB0', 0, { gid: 0 });
  await r.clock.advance(200);
  r.files.group('/dev/ttyUSB0', 20);
  await r.clock.advance(240);
  assert.equal(r.looks, 0);
  await r.clock.advance(20);
  assert.equal(r.looks, 1);
  await r.clock.advance(600_000);
  assert.equal(r.looks, 1, 'nothing is looked at without a cause');
});

test('names without a meaning cost nothing, and a folder that is never quiet is looked at every two seconds', async () => {
  const r = rig();
  r.watch.set(interest);
  r.files.plug('/dev/null', 3);
  await r.clock.advance(10_000);
  assert.equal(r.looks, 0);
  r.files.plug('/dev/ttyUSB0', 0);
  for (let i = 0; i < 100; i++) {
    r.files.group('/dev/ttyUSB0', i);
    await r.clock.advance(100);
  }
  assert.ok(r.looks >= 4 && r.looks <= 5, `${r.looks} looks in 10 s`);
});

test('without a watch it looks every 20 s and says so, until the kernel has one again', async () => {
  const r = rig();
  r.files.refuse = Object.assign(new Error('no watches left'), { code: 'ENOSPC' });
  assert.equal(r.watch.set(interest), false);
  assert.deepEqual(r.told, ['cannot watch /dev (ENOSPC): devices are looked for every 20 s']);
  await r.clock.advance(60_000);
  assert.equal(r.looks, 3);
  assert.equal(r.told.length, 1);
  r.files.refuse = undefined;
  await r.clock.advance(20_000);
  assert.deepEqual(r.told.slice(1), [undefined]);
  await r.clock.advance(600_000);
  assert.equal(r.looks, 4);
});

test('a folder that was made anew is watched anew, and nothing is watched after the end', () => {
  const r = rig();
  const byId = new Map([['/dev/serial', [/./]]]);
  r.files.plug('/dev/serial/a', 0);
  assert.equal(r.watch.set(byId), true);
  r.files.remove('/dev/serial');
  r.files.plug('/dev/serial/a', 1);
  assert.equal(r.watch.set(byId), true);
  assert.deepEqual(r.files.watched(), ['/dev/serial']);
  r.watch.set(interest);
  assert.deepEqual(r.files.watched(), ['/dev']);
  r.watch.stop();
  assert.deepEqual(r.files.watched(), []);
});

test('a watch that breaks is told, and made again at the next look', async () => {
  const r = rig();
  r.watch.set(interest);
  for (const w of [...r.files.watchers]) w.failed(Object.assign(new Error('gone'), { code: 'EIO' }));
  assert.deepEqual(r.told, ['watching /dev failed (EIO): devices are looked for every 20 s']);
  await r.clock.advance(20_000);
  assert.deepEqual(r.told.slice(1), [undefined]);
  assert.deepEqual(r.files.watched(), ['/dev']);
});
