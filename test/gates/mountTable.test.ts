import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { MountTable } from '../../src/gates/mountTable.ts';
import { systemMounter } from '../../src/volumes/mount.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { folder } from '../volumes/house.ts';

test('a mount point is known as it is written and through links; a folder in it, beside it and one that is gone are none', async () => {
  const dir = folder();
  const table = new MountTable({ clock: new FakeClock(), mountPoints: systemMounter.mountPoints });
  mkdirSync(join(dir, 'ssd'));
  symlinkSync('ssd', join(dir, 'link'));
  assert.equal(await table.has(join(dir, 'ssd')), false);
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', join(dir, 'ssd')]);
  mkdirSync(join(dir, 'ssd/data'));
  const wanted = { ssd: true, link: true, 'ssd/data': false, 'link/data': false, none: false, '': false };
  for (const [name, is] of Object.entries(wanted)) assert.equal(await table.has(join(dir, name)), is, name);
  execFileSync('umount', [join(dir, 'ssd')]);
  assert.equal(await table.has(join(dir, 'link')), false);
});

test('a path that does not answer is waited for a moment only, and looked at once by all', async () => {
  const clock = new FakeClock();
  let looks = 0;
  const realPath = () => {
    looks++;
    return new Promise<string>(() => {});
  };
  const table = new MountTable({ clock, mountPoints: async () => ['/'], realPath });
  const answers = [table.has('/away'), table.has('/away'), table.realPath('/away')];
  await clock.advance(2_000);
  assert.deepEqual(await Promise.all(answers), [false, false, undefined]);
  const again = table.has('/away');
  await clock.advance(2_000);
  assert.equal(await again, false);
  assert.equal(looks, 1);
  assert.equal(clock.sleeping, 0);
});

test('what stands in the table needs no look', async () => {
  const realPath = () => Promise.reject(new Error('looked'));
  const table = new MountTable({ clock: new FakeClock(), mountPoints: async () => ['/mnt/ssd'], realPath });
  assert.equal(await table.has('/mnt/ssd'), true);
});
