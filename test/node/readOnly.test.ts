import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readOnlyMounts } from '../../src/node/readOnly.ts';
import { mountinfo } from './boards.ts';

const paths = ['/', '/var/lib/podsched'];

test('a root that can be written to is no news', () => {
  assert.deepEqual(readOnlyMounts(mountinfo(), paths), []);
});

for (const options of ['ro', 'ro,errors=remount-ro', 'rw,emergency_ro', 'rw,shutdown'])
  test(`a root that the kernel has closed (${options}) is told once for all paths on it`, () => {
    assert.deepEqual(readOnlyMounts(mountinfo(options), paths), ['/']);
  });

test('a service that sees a writable disk as read-only (ProtectSystem) is not taken in', () => {
  assert.deepEqual(readOnlyMounts('28 1 179:2 / / ro,noatime shared:1 - ext4 /dev/root rw,errors=remount-ro\n', paths), []);
});

test('each path is judged by the disk that it lies on', () => {
  const text = `${mountinfo()}95 28 8:1 / /var/lib/podsched rw,relatime shared:70 - ext4 /dev/sda1 ro\n96 28 8:2 / /var/lib/pod rw - ext4 /dev/sda2 ro\n`;
  assert.deepEqual(readOnlyMounts(text, paths), ['/var/lib/podsched']);
  assert.deepEqual(readOnlyMounts(text, ['/var/lib/podsched/state', '/var/lib/podother']), ['/var/lib/podsched']);
});

test('of two disks on one place the upper one counts', () => {
  const text = `${mountinfo('ro')}97 28 0:60 / / rw,relatime - overlay overlay rw,lowerdir=/lower\n`;
  assert.deepEqual(readOnlyMounts(text, ['/']), []);
});

test('a disk that is read-only by nature has not failed', () => {
  assert.deepEqual(readOnlyMounts('28 1 7:0 / / ro - squashfs /dev/loop0 ro\n', ['/']), []);
});

test('names with spaces are read, and what is no mount table tells nothing', () => {
  const text = `${mountinfo()}98 28 8:3 / /mnt/my\\040disk rw - ext4 /dev/sdb1 ro\n`;
  assert.deepEqual(readOnlyMounts(text, ['/mnt/my disk/data']), ['/mnt/my disk']);
  for (const garbage of ['', '\0\0', ' - ', 'a b c d e - f', '1 2 3 4 / - ext4']) assert.deepEqual(readOnlyMounts(garbage, paths), []);
});
