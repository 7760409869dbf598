import assert from 'node:assert/strict';
import { test } from 'node:test';
import { natural, patternOf, scanClass } from '../../src/cm/deviceScan.ts';
import { FakeDeviceFiles } from '../fakes/fakeDeviceFiles.ts';

const found = (files: FakeDeviceFiles, ...globs: string[]) =>
  scanClass(files, globs).members.map(({ paths, node }) => `${paths.join(' ')} -> ${node}`);

test('the members of a class are the devices that its globs match, numbers in their names by value', () => {
  const files = new FakeDeviceFiles();
  for (const n of [10, 2, 1]) files.plug(`/dev/i2c-${n}`, n, { major: 89 });
  files.plug('/dev/i2c', 99);
  files.plug('/dev/tty0', 0, { major: 4 });
  assert.deepEqual(found(files, '/dev/i2c-*'), ['/dev/i2c-1 -> /dev/i2c-1', '/dev/i2c-2 -> /dev/i2c-2', '/dev/i2c-10 -> /dev/i2c-10']);
  assert.deepEqual(found(files, '/dev/i2c-2', '/dev/i2c-[13-9]'), ['/dev/i2c-1 -> /dev/i2c-1', '/dev/i2c-2 -> /dev/i2c-2']);
});

test('a link is followed to its node, and two links to one device are one member', () => {
  const files = new FakeDeviceFiles();
  files.plug('/dev/ttyUSB0', 0);
  files.link('/dev/serial/by-id/usb-FTDI_A', '../../ttyUSB0');
  files.link('/dev/serial/by-path/pci-0', '../../ttyUSB0');
  assert.deepEqual(found(files, '/dev/serial/*/*'), ['/dev/serial/by-id/usb-FTDI_A /dev/serial/by-path/pci-0 -> /dev/ttyUSB0']);
});

test('links to links and links to folders are followed, as long as they stay in /dev', () => {
  const files = new FakeDeviceFiles();
  files.plug('/dev/video0', 0, { major: 81 });
  files.link('/dev/camera', 'front');
  files.link('/dev/front', '/dev/video0');
  files.link('/dev/cams', '.');
  assert.deepEqual(found(files, '/dev/camera'), ['/dev/camera -> /dev/video0']);
  assert.deepEqual(found(files, '/dev/cams/video*'), ['/dev/cams/video0 -> /dev/video0']);
});

test('what leads out of /dev, in a circle, nowhere, or to no device is no member', () => {
  const files = new FakeDeviceFiles();
  files.link('/dev/a-out', '../etc/shadow');
  files.link('/dev/a-absolute', '/proc/kcore');
  files.link('/dev/a-round', 'a-round2');
  files.link('/dev/a-round2', 'a-round');
  files.link('/dev/a-dangling', 'nothing');
  files.link('/dev/a-self', '/dev');
  files.file('/dev/a-file');
  files.plug('/dev/a-folder/x', 1);
  assert.deepEqual(found(files, '/dev/a-*'), []);
  files.link('/dev/fd', '/proc/self/fd');
  assert.deepEqual(found(files, '/dev/fd/*'), []);
});

test('a class without a device says where one may come', () => {
  const files = new FakeDeviceFiles();
  const folders = (): string[] => [...scanClass(files, ['/dev/serial/by-id/*']).interest.keys()];
  assert.deepEqual(folders(), ['/dev']);
  files.plug('/dev/ttyUSB0', 0);
  files.link('/dev/serial/by-id/x', '../../ttyUSB0');
  assert.deepEqual(folders(), ['/dev', '/dev/serial', '/dev/serial/by-id']);
});

test('globs', () => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ['ttyUSB*', 'ttyUSB0', true],
    ['ttyUSB*', 'ttyUSB', true],
    ['ttyUSB*', 'ttyusb0', false],
    ['ttyUSB?', 'ttyUSB10', false],
    ['*', '.hidden', false],
    ['.h*', '.hidden', true],
    ['a.b', 'axb', false],
    ['a+(b)', 'a+(b)', true],
    ['i2c-[0-3]', 'i2c-3', true],
    ['i2c-[!0-3]', 'i2c-3', false],
    ['i2c-[!0-3]', 'i2c-4', true],
    ['x[', 'x[', true],
    ['x[]', 'x[]', true],
    ['x[z-a]', 'xb', false],
    ['a\\*b', 'a*b', true],
    ['a\\*b', 'axb', false],
    ['usb-*_A:1.0-if00', 'usb-FTDI_A:1.0-if00', true],
  ];
  for (const [glob, name, fits] of cases) assert.equal(patternOf(glob).test(name), fits, `${glob} and ${name}`);
});

test('names are ordered as people count', () => {
  assert.deepEqual(['b', 'a10', 'a9', 'a', 'a09'].sort(natural), ['a', 'a09', 'a9', 'a10', 'b']);
});
