import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { numbersOf, realPath, systemDeviceFiles } from '../../src/cm/deviceFiles.ts';

test('the kernel’s own devices are read as they are', () => {
  const node = systemDeviceFiles().look('/dev/null');
  assert.ok(node?.kind === 'char');
  assert.deepEqual([node.major, node.minor, node.gid, node.mode], [1, 3, 0, 0o666]);
  assert.ok(node.inode > 0);
});

test('device numbers are unpacked as the C library packs them', () => {
  assert.deepEqual(numbersOf(0x103), { major: 1, minor: 3 });
  assert.deepEqual(numbersOf(188 * 256 + 7), { major: 188, minor: 7 });
  // major 0xfed, minor 0xabcde
  assert.deepEqual(numbersOf(0xabc00000 + 0xfed * 256 + 0xde), { major: 0xfed, minor: 0xabcde });
  assert.deepEqual(numbersOf(2 ** 44 + 1 * 256 + 2), { major: 0x1001, minor: 2 });
});

test('links, folders and files below another root are those of /dev', () => {
  const root = mkdtempSync(join(tmpdir(), 'podsched-dev-'));
  try {
    const files = systemDeviceFiles(root);
    mkdirSync(join(root, 'serial/by-id'), { recursive: true });
    writeFileSync(join(root, 'ttyUSB0'), '');
    symlinkSync('../../ttyUSB0', join(root, 'serial/by-id/x'));
    symlinkSync(join(root, 'ttyUSB0'), join(root, 'absolute'));
    symlinkSync('/etc/passwd', join(root, 'out'));
    assert.deepEqual([...(files.names('/dev') ?? [])].sort(), ['absolute', 'out', 'serial', 'ttyUSB0']);
    assert.equal(files.names('/dev/ttyUSB0'), undefined);
    assert.deepEqual(files.look('/dev/serial/by-id/x'), { kind: 'link', target: '../../ttyUSB0' });
    assert.deepEqual(files.look('/dev/ttyUSB0'), { kind: 'other' });
    assert.equal(files.look('/dev/nothing'), undefined);
    assert.equal(realPath(files, '/dev/serial/by-id/x'), '/dev/ttyUSB0');
    assert.equal(realPath(files, '/dev/absolute'), '/dev/ttyUSB0');
    assert.equal(realPath(files, '/dev/out'), undefined);
    assert.equal(files.hostPath('/dev/ttyUSB0'), join(root, 'ttyUSB0'));
    assert.equal(files.identity('/dev/ttyUSB0'), undefined);
    assert.match(files.identity('/dev/serial') ?? '', /^\d+:\d+$/);
  } finally {
    rmSync(root, { recursive: true });
  }
});

test('a watch hears what comes and goes in its folder', async () => {
  const root = mkdtempSync(join(tmpdir(), 'podsched-dev-'));
  const heard: (string | null)[] = [];
  const handle = systemDeviceFiles(root).watch(
    '/dev',
    (name) => heard.push(name),
    (e) => assert.fail(String(e)),
  );
  try {
    writeFileSync(join(root, 'ttyUSB0'), '');
    const until = async (done: () => boolean): Promise<void> => {
      for (let i = 0; i < 3000 && !done(); i++) await new Promise((resolve) => setTimeout(resolve, 10));
      assert.ok(done(), `heard: ${heard.join(', ')}`);
    };
    await until(() => heard.includes('ttyUSB0'));
    heard.length = 0;
    unlinkSync(join(root, 'ttyUSB0'));
    await until(() => heard.includes('ttyUSB0'));
  } finally {
    handle.close();
    rmSync(root, { recursive: true });
  }
});
