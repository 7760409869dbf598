import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import type { EmptyDirVolumeSource, HostPathType, HostPathVolumeSource } from '../../src/api/v1.ts';
import { memoryMount } from '../../src/volumes/emptyDir.ts';
import { HostLooks } from '../../src/volumes/hostLooks.ts';
import { checkHostPath as checkWith } from '../../src/volumes/hostPath.ts';
import { parseMountPoints } from '../../src/volumes/mount.ts';
import { giveToGroup } from '../../src/volumes/ownership.ts';
import { mountWords } from '../../src/volumes/volumeMounts.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { FakeMounter } from '../fakes/fakeMounter.ts';
import { container, folder, House, mode, pod, podWith } from './house.ts';

const checkHostPath = (source: HostPathVolumeSource): Promise<void> => checkWith(source, new HostLooks({ clock: new FakeClock() }));

test('each hostPath type takes what is of its type, and names what it wanted else', async (t) => {
  const dir = folder();
  const at = (name: string): string => join(dir, name);
  mkdirSync(at('dir'));
  writeFileSync(at('file'), '');
  const server = createServer().listen(at('socket'));
  t.after(() => server.close());
  await once(server, 'listening');
  execFileSync('mknod', [at('char'), 'c', '1', '3']);
  execFileSync('mknod', [at('block'), 'b', '7', '250']);
  execFileSync('mkfifo', [at('fifo')]);
  symlinkSync(at('dir'), at('link'));
  symlinkSync(at('nowhere'), at('dangling'));
  const right: Record<HostPathType, readonly string[]> = {
    '': ['dir', 'file', 'socket', 'char', 'block', 'fifo', 'link'],
    Directory: ['dir', 'link'],
    DirectoryOrCreate: ['dir', 'link'],
    File: ['file'],
    FileOrCreate: ['file'],
    Socket: ['socket'],
    CharDevice: ['char'],
    BlockDevice: ['block'],
  };
  const words: Record<HostPathType, string> = {
    '': 'does not exist, and only the types DirectoryOrCreate and FileOrCreate create it',
    Directory: 'is not a directory',
    DirectoryOrCreate: 'is not a directory',
    File: 'is not a file',
    FileOrCreate: 'is not a file',
    Socket: 'is not a socket file',
    CharDevice: 'is not a character device',
    BlockDevice: 'is not a block device',
  };
  const all = ['dir', 'file', 'socket', 'char', 'block', 'fifo', 'link', 'missing', 'file/below', 'dangling'];
  for (const [type, fit] of Object.entries(right) as [HostPathType, readonly string[]][]) {
    for (const name of all) {
      const creates = type.endsWith('OrCreate') && ['missing', 'file/below', 'dangling'].includes(name);
      if (creates) continue;
      const path = at(name);
      const outcome = await checkHostPath({ path, type }).then(
        () => 'right',
        (e: Error) => e.message,
      );
      assert.equal(outcome, fit.includes(name) ? 'right' : `hostPath type check failed: ${path} ${words[type]}`, `${type} ${name}`);
    }
  }
  assert.ok(!existsSync(at('missing')), 'nothing is created');
  await assert.rejects(checkHostPath({ path: `${dir}/dir/../file` }), /must not contain '\.\.'/);
  await assert.rejects(checkHostPath({ path: at('dir'), type: 'Folder' as HostPathType }), /is an invalid volume type$/);
});

test('…OrCreate creates: a folder with all above it, a file in a folder that is there; and leaves what is there', async () => {
  const dir = folder();
  mkdirSync(join(dir, 'private'), { mode: 0o700 });
  const before = process.umask(0o077);
  try {
    await checkHostPath({ path: join(dir, 'private/b/c/'), type: 'DirectoryOrCreate' });
    await checkHostPath({ path: join(dir, 'a'), type: 'DirectoryOrCreate' });
    await checkHostPath({ path: join(dir, 'a/f'), type: 'FileOrCreate' });
  } finally {
    process.umask(before);
  }
  assert.deepEqual(
    ['private', 'private/b', 'private/b/c', 'a', 'a/f'].map((name) => mode(join(dir, name))),
    ['700', '755', '755', '755', '644'],
  );
  writeFileSync(join(dir, 'a/f'), 'text');
  await checkHostPath({ path: join(dir, 'a/f'), type: 'FileOrCreate' });
  assert.equal(readFileSync(join(dir, 'a/f'), 'utf8'), 'text');
  await assert.rejects(checkHostPath({ path: join(dir, 'none/f'), type: 'FileOrCreate' }), /cannot be created \(ENOENT\)/);
  assert.ok(!existsSync(join(dir, 'none')));
});

test('a link that a container puts where a folder was just made gives nothing of the node another mode', async () => {
  const dir = folder();
  const [shared, secret] = [join(dir, 'shared'), join(dir, 'secret')];
  mkdirSync(shared);
  writeFileSync(secret, 'root’s own', { mode: 0o600 });
  const made = join(shared, 'new');
  // it waits for the folder and has a link in its place at once
  const script = `const fs = require('fs');
    for (;;) {
      try { fs.rmdirSync(${JSON.stringify(made)}); fs.symlinkSync(${JSON.stringify(secret)}, ${JSON.stringify(made)}); } catch {}
      if (Math.random() < 0.01) try { fs.unlinkSync(${JSON.stringify(made)}); } catch {}
    }`;
  const hostile = spawn(process.execPath, ['-e', script], { stdio: 'ignore' });
  const outcomes = new Set<string>();
  try {
    // on a busy machine it takes a while until the other process is met
    const began = performance.now();
    const took = (): number => performance.now() - began;
    while (took() < 3000 || (outcomes.size < 2 && took() < 30_000)) {
      await checkHostPath({ path: made, type: 'DirectoryOrCreate' }).then(
        () => outcomes.add('made'),
        (e: Error) => outcomes.add(e.message.replace(made, '')),
      );
      assert.equal(mode(secret), '600');
    }
  } finally {
    hostile.kill('SIGKILL');
    await once(hostile, 'close');
  }
  assert.ok(outcomes.size > 1, [...outcomes].join('; '));
});

test('fsGroup: group, bits and setgid as the kubelet gives them; links are given, what they lead to is not', async () => {
  const dir = folder();
  const root = join(dir, 'v');
  mkdirSync(join(root, 'sub'), { recursive: true, mode: 0o700 });
  writeFileSync(join(root, 'sub/f'), '', { mode: 0o600 });
  writeFileSync(join(root, 'run'), '', { mode: 0o755 });
  writeFileSync(join(dir, 'outside'), '', { mode: 0o600 });
  symlinkSync(join(dir, 'outside'), join(root, 'link'));
  chownSync(join(root, 'sub/f'), 1000, 1000);
  await giveToGroup(root, { fsGroup: 2000, fileBits: 0o660 });
  const of = (...parts: string[]) => {
    const { uid, gid } = lstatSync(join(root, ...parts));
    return `${uid}:${gid} ${mode(join(root, ...parts))}`;
  };
  assert.deepEqual([of(), of('sub'), of('sub/f'), of('run')], ['0:2000 2770', '0:2000 2770', '1000:2000 660', '0:2000 775']);
  assert.equal(lstatSync(join(root, 'link')).gid, 2000);
  assert.deepEqual([statSync(join(dir, 'outside')).gid, mode(join(dir, 'outside'))], [0, '600']);
});

test('OnRootMismatch looks at the root only; Always goes through everything', async () => {
  const root = join(folder(), 'v');
  mkdirSync(root, { mode: 0o700 });
  const give = (policy: 'OnRootMismatch' | 'Always') => giveToGroup(root, { fsGroup: 2000, policy, fileBits: 0o660 });
  await give('OnRootMismatch');
  assert.equal(mode(root), '2770');
  writeFileSync(join(root, 'f'), '', { mode: 0o600 });
  chownSync(join(root, 'f'), 0, 0);
  await give('OnRootMismatch');
  assert.equal(mode(join(root, 'f')), '600');
  await give('Always');
  assert.equal(mode(join(root, 'f')), '660');
  for (const spoil of [() => chownSync(root, 0, 0), () => chmodSync(root, 0o770), () => chmodSync(root, 0o2750)]) {
    chmodSync(join(root, 'f'), 0o600);
    spoil();
    await give('OnRootMismatch');
    assert.deepEqual([mode(root), statSync(root).gid, mode(join(root, 'f'))], ['2770', 2000, '660']);
  }
});

const node = 1 << 30;
const sized = (source: EmptyDirVolumeSource, limits: readonly (string | undefined)[] = [undefined]) =>
  memoryMount(
    pod({
      containers: limits.map((memory, i) => container(`c${i}`, memory === undefined ? {} : { resources: { limits: { memory } } })),
    }).pod,
    source,
    node,
  );

test('a tmpfs is as large as the least of node, pod and volume allow', () => {
  const table: readonly (readonly [string | undefined, readonly (string | undefined)[], number])[] = [
    [undefined, [undefined], node],
    ['8Mi', [undefined], 8 << 20],
    ['2Gi', [undefined], node],
    ['0', [undefined], node],
    [undefined, ['64Mi', '64Mi'], 128 << 20],
    ['8Mi', ['64Mi'], 8 << 20],
    ['96Mi', ['64Mi'], 64 << 20],
    [undefined, ['64Mi', undefined], node],
  ];
  for (const [sizeLimit, limits, bytes] of table) {
    const source = { medium: 'Memory', ...(sizeLimit !== undefined && { sizeLimit }) };
    assert.deepEqual(sized(source, limits), { type: 'tmpfs', options: [`size=${bytes}`] }, `${sizeLimit} ${limits}`);
  }
});

test('huge pages have the size that is asked for, and an unknown medium is refused', () => {
  const huge = (medium: string, ...sizes: readonly string[]) =>
    memoryMount(
      pod({ containers: sizes.map((s, i) => container(`c${i}`, { resources: { limits: { [`hugepages-${s}`]: '4Mi' } } })) }).pod,
      { medium },
      node,
    );
  assert.deepEqual(huge('HugePages', '2Mi', '2Mi'), { type: 'hugetlbfs', options: ['pagesize=2M'] });
  assert.deepEqual(huge('HugePages-1Gi', '2Mi', '1Gi'), { type: 'hugetlbfs', options: ['pagesize=1G'] });
  assert.throws(() => huge('HugePages', '2Mi', '1Gi'), /of one size/);
  assert.throws(() => huge('HugePages'), /of one size/);
  assert.throws(() => huge('HugePages-1Gi', '2Mi'), /hugepages-1Gi/);
  assert.throws(() => sized({ medium: 'Disk' }), /^Error: unknown storage medium "Disk"$/);
  assert.equal(sized({ medium: '' }), undefined);
});

test('noswap is asked for, and not again where the kernel does not know it; what else is wrong is told', async () => {
  const house = new House();
  const mounter = new FakeMounter();
  const manager = house.newAgent({ mounter });
  const memory = (uid: string) => ({ ...podWith([{ name: 'm', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } }]), uid: uid as never });
  const asked: string[] = [];
  await manager.setUp(memory('uid-1'));
  mounter.refuse = (what) => {
    asked.push(what);
    return what.includes('noswap') ? new Error('bad option') : undefined;
  };
  await manager.setUp(memory('uid-2'));
  await manager.setUp(memory('uid-3'));
  assert.deepEqual(
    mounter.mounted.map((m) => m.what),
    ['tmpfs size=1048576,noswap', 'tmpfs size=1048576', 'tmpfs size=1048576'],
  );
  assert.deepEqual(asked, ['tmpfs size=1048576,noswap', 'tmpfs size=1048576', 'tmpfs size=1048576']);
  mounter.refuse = () => new Error('mount: permission denied');
  await assert.rejects(manager.setUp(memory('uid-4')), /volume "m" : mount: permission denied$/);
  // umount refuses: nothing is deleted, and it is told
  mounter.refuse = (what) => (what === 'unmount' ? new Error('target is busy') : undefined);
  await assert.rejects(manager.tearDown('uid-1' as never), /target is busy/);
  assert.ok(existsSync(house.emptyDir('m')));
});

test('what a mount says to the runtime', () => {
  const words = (mount: object, o: object = {}) =>
    mountWords({ name: 'v', mountPath: '/v', ...mount }, { volumeReadOnly: false, relabel: false, recursiveReadOnly: false, ...o });
  const plain = { containerPath: '/v', readonly: false };
  assert.deepEqual(words({}), plain);
  assert.deepEqual(words({ mountPropagation: 'None', recursiveReadOnly: 'Disabled' }), plain);
  assert.deepEqual(words({ mountPath: 'rel/v' }), { ...plain, containerPath: '/rel/v' });
  assert.deepEqual(words({}, { volumeReadOnly: true, relabel: true }), { ...plain, readonly: true, selinuxRelabel: true });
  assert.deepEqual(words({ mountPropagation: 'HostToContainer' }), { ...plain, propagation: 'HOST_TO_CONTAINER' });
  assert.deepEqual(words({ mountPropagation: 'Bidirectional' }), { ...plain, propagation: 'BIDIRECTIONAL' });
  const readOnly = { readOnly: true, recursiveReadOnly: 'IfPossible' };
  assert.deepEqual(words(readOnly), { ...plain, readonly: true });
  assert.deepEqual(words(readOnly, { recursiveReadOnly: true }), { ...plain, readonly: true, recursiveReadOnly: true });
  assert.throws(() => words({ ...readOnly, recursiveReadOnly: 'Enabled' }), /requested recursive read-only mode, but it is not supported/);
});

test('mount points are read with their blanks', () => {
  assert.deepEqual(parseMountPoints('22 27 0:21 / /a\\040b\\134c rw - proc proc rw\n23 27 0:22 / /sys rw - sysfs sysfs rw\n'), [
    '/a b\\c',
    '/sys',
  ]);
});
