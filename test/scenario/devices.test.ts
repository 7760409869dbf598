/** Field cases K1 and K2 in virtual time, the whole agent: devices that are absent, go, come back, and are another pod's. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manifest, World } from './world.ts';

const wants = (name: string, deviceClass = 'serial'): string => {
  const resources = `{limits: {devices.podsched.dev/${deviceClass}: 1}}`;
  return manifest(name, { containers: [`{name: app, image: localhost/busybox:1, command: [sleep, "100"], resources: ${resources}}`] });
};
const now = (w: World, name: string): string => `${w.sync(name)?.phase} ${w.sync(name)?.reason}: ${w.sync(name)?.message}`;
const state = (w: World, name: string): string => {
  const [c] = w.pod(name)?.status.containerStatuses ?? [];
  return `${c?.containerID} ${c?.restartCount}`;
};

async function started(files: Readonly<Record<string, string>>, prepare: (w: World) => void = () => {}): Promise<World> {
  const w = new World();
  w.deviceClasses = { serial: ['/dev/serial/by-id/*'] };
  prepare(w);
  for (const [name, text] of Object.entries(files)) w.folder.write(`${name}.yaml`, text);
  await w.start();
  await w.advance(5);
  return w;
}

function plug(w: World, node: string, minor: number): void {
  w.deviceFiles.plug(`/dev/${node}`, minor);
  w.deviceFiles.link('/dev/serial/by-id/usb-x', `../../${node}`);
}
function unplug(w: World, node: string): void {
  w.deviceFiles.remove('/dev/serial');
  w.deviceFiles.remove(`/dev/${node}`);
}

test('K2: booted without its device a pod waits for hours without a try, and starts at the moment it is plugged in', async () => {
  const w = await started({ web: wants('web') });
  assert.match(now(w, 'web'), /^Waiting WaitingForDevice: .*no device of class serial is there \(\/dev\/serial\/by-id\/\*\)/);
  await w.advance(7200);
  assert.equal(w.runtime.running().length, 0);
  plug(w, 'ttyUSB0', 0);
  await w.advance(2);
  assert.equal(w.sync('web')?.reason, 'Ready');
  assert.match(state(w, 'web'), / 0$/);
  assert.deepEqual(
    w.runtime.find('web', 'app')?.config.devices?.map((d) => d.containerPath),
    ['/dev/serial/by-id/usb-x', '/dev/ttyUSB0'],
  );
});

test('K2: unplugged and back under another number, only its own container starts again, also over an agent restart', async () => {
  const w = await started({ web: wants('web'), other: manifest('other') }, (world) => plug(world, 'ttyUSB0', 0));
  const [web, other] = [state(w, 'web'), state(w, 'other')];
  unplug(w, 'ttyUSB0');
  await w.advance(5);
  assert.match(now(w, 'web'), /^Running DeviceGone: gone: container app: \/dev\/serial\/by-id\/usb-x, \/dev\/ttyUSB0 \(class serial\)/);
  await w.restart();
  await w.advance(300);
  assert.deepEqual([state(w, 'web'), state(w, 'other'), w.sync('web')?.reason], [web, other, 'DeviceGone']);
  assert.equal(w.events.filter((e) => e.reason === 'DeviceGone').length, 1);
  plug(w, 'ttyUSB1', 1);
  await w.advance(5);
  assert.equal(w.sync('web')?.reason, 'Ready');
  assert.match(state(w, 'web'), / 1$/);
  assert.equal(state(w, 'other'), other);
  await w.restart();
  await w.advance(300);
  assert.match(state(w, 'web'), / 1$/);
});

test('K2: a container that crashes without its device waits for it, and its back-off does not grow meanwhile', async () => {
  const w = await started({ web: wants('web') }, (world) => plug(world, 'ttyUSB0', 0));
  unplug(w, 'ttyUSB0');
  await w.advance(2);
  const running = w.runtime.find('web', 'app');
  assert.ok(running);
  w.runtime.exit(running.id, 1);
  await w.advance(3600);
  assert.equal(w.sync('web')?.reason, 'WaitingForDevice');
  plug(w, 'ttyUSB1', 1);
  await w.advance(2);
  assert.equal(w.sync('web')?.reason, 'Ready');
  assert.match(state(w, 'web'), / 1$/);
});

test('K1: a device is one pod’s; when that pod is removed, the next one has it', async () => {
  const w = await started({ a: wants('a') }, (world) => plug(world, 'ttyUSB0', 0));
  w.folder.write('b.yaml', wants('b'));
  await w.advance(5);
  assert.match(now(w, 'b'), /OutOfdevices\.podsched\.dev\/serial|WaitingForDevice: .*used by pod default\/a/);
  w.folder.remove('a.yaml');
  await w.advance(60);
  assert.equal(w.sync('b')?.reason, 'Ready');
});

test('an unknown class is refused by path, and a reload of the configuration brings it', async () => {
  const w = await started({ web: wants('web', 'camera') });
  assert.equal(w.sync('web')?.reason, 'Invalid');
  w.deviceFiles.plug('/dev/video0', 0, { major: 81 });
  w.deviceClasses = { camera: ['/dev/video*'] };
  void w.kubelet.config.readFolder();
  await w.advance(5);
  assert.equal(w.sync('web')?.reason, 'Ready');
});
