import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { detect, modeOf, parseProcCgroups } from '../detect.ts';
import { Hierarchy } from '../hierarchy.ts';
import { parseMountinfo } from '../mountinfo.ts';
import { newTree, type Tree } from './tree.ts';

const all = ['cpuset', 'cpu', 'io', 'memory', 'hugetlb', 'pids', 'rdma', 'misc'];

/** A /proc beside the tree. */
function proc(tree: Tree, mountinfo: string, cgroups = ''): string {
  const dir = join(tree.root, '../proc');
  mkdirSync(join(dir, 'self'), { recursive: true });
  writeFileSync(join(dir, 'self/mountinfo'), mountinfo);
  writeFileSync(join(dir, 'cgroups'), cgroups);
  return dir;
}

const v2Mount = (point: string, options = 'rw'): string =>
  `35 24 0:30 / ${point} ${options},nosuid shared:9 - cgroup2 cgroup2 ${options},nsdelegate\n`;
const v1Mount = (point: string, names: string): string => `32 31 0:29 / ${point}/${names} rw,relatime - cgroup cgroup rw,${names}\n`;
const table = (rows: Readonly<Record<string, 0 | 1>>): string =>
  `#subsys_name\thierarchy\tnum_cgroups\tenabled\n${Object.entries(rows)
    .map(([name, on]) => `${name}\t0\t50\t${on}\n`)
    .join('')}`;

test('the mode is what is mounted', () => {
  const root = '/sys/fs/cgroup';
  const tmpfs = `31 23 0:28 / ${root} rw,relatime - tmpfs tmpfs rw,mode=755\n`;
  const cases: readonly [mountinfo: string, mode: string][] = [
    [v2Mount(root), 'v2'],
    [tmpfs + v1Mount(root, 'memory') + v1Mount(root, 'cpu,cpuacct'), 'v1'],
    [`${tmpfs + v1Mount(root, 'memory')}41 31 0:38 / ${root}/unified rw,relatime - cgroup2 cgroup2 rw\n`, 'hybrid'],
    // systemd's own tree carries no controller, and alone it makes no v1
    [`${tmpfs}40 31 0:37 / ${root}/systemd rw - cgroup cgroup rw,name=systemd\n`, 'none'],
    [tmpfs, 'none'],
    ['', 'none'],
    // the later mount on the same point is the one that is seen
    [tmpfs + v2Mount(root), 'v2'],
    [v2Mount(root) + tmpfs, 'none'],
    // a container: the tree is a mount above the root we were given
    [v2Mount('/sys/fs'), 'v2'],
  ];
  for (const [mountinfo, mode] of cases) assert.equal(modeOf(parseMountinfo(mountinfo), root), mode, mountinfo);
});

test('a whole v2 machine lacks nothing', async () => {
  const tree = newTree({ controllers: all });
  assert.deepEqual(await detect({ root: tree.root, procRoot: proc(tree, v2Mount(tree.root)) }), {
    mode: 'v2',
    mountPoint: tree.root,
    available: all,
    missing: [],
    notDelegated: [],
    v1: [],
    writable: true,
  });
});

test('memory switched off at boot is missing, whatever the command line says', async () => {
  const tree = newTree({ controllers: all.filter((c) => c !== 'memory') });
  const procRoot = proc(tree, v2Mount(tree.root), table({ cpu: 1, memory: 0, pids: 1 }));
  writeFileSync(join(procRoot, 'cmdline'), 'cgroup_enable=memory cgroup_memory=1');
  const { mode, missing } = await detect({ root: tree.root, procRoot });
  assert.equal(mode, 'v2');
  assert.deepEqual(missing, [{ controller: 'memory', why: 'disabled' }]);
});

test('why a controller is missing is told apart', async () => {
  const tree = newTree({ controllers: ['cpu'] });
  const mounts = v2Mount(tree.root) + v1Mount('/other', 'pids') + v1Mount('/other', 'blkio');
  const procRoot = proc(tree, mounts, table({ cpu: 1, cpuset: 1, memory: 0, pids: 1, blkio: 1 }));
  const { missing, v1 } = await detect({ root: tree.root, procRoot });
  assert.deepEqual(missing, [
    { controller: 'cpuset', why: 'unknown' },
    { controller: 'io', why: 'v1' },
    { controller: 'memory', why: 'disabled' },
    { controller: 'hugetlb', why: 'not-listed' },
    { controller: 'pids', why: 'v1' },
  ]);
  assert.deepEqual(v1, ['blkio', 'pids']);
  const silent = await detect({ root: tree.root, procRoot: proc(tree, v2Mount(tree.root)) });
  assert.deepEqual(silent.missing.at(-1), { controller: 'pids', why: 'unknown' });
});

test('a controller that gets lost on the way to the subtree is told with the place', async () => {
  const tree = newTree({ controllers: ['cpu', 'memory', 'pids'] });
  const h = new Hierarchy({ root: tree.root, fs: tree.fs });
  await h.create('user.slice', ['cpu', 'memory', 'pids']);
  await h.create('user.slice/me', ['memory', 'pids']);
  await h.create('user.slice/me/app', ['pids']);
  const options = {
    root: tree.root,
    procRoot: proc(tree, v2Mount(tree.root)),
    subtree: 'user.slice/me/app',
    wanted: ['cpu', 'memory', 'pids', 'io'],
  };
  const { missing, notDelegated } = await detect(options);
  assert.deepEqual(
    missing.map((m) => m.controller),
    ['io'],
  );
  assert.deepEqual(notDelegated, [
    { controller: 'cpu', lostAt: 'user.slice' },
    { controller: 'memory', lostAt: 'user.slice/me' },
  ]);
});

test('a subtree that is not there yet is judged by its nearest parent', async () => {
  const tree = newTree();
  const { notDelegated, writable } = await detect({ root: tree.root, procRoot: proc(tree, v2Mount(tree.root)), subtree: 'not/yet' });
  assert.deepEqual([notDelegated, writable], [[], true]);
});

test('a hybrid machine has a v2 tree with what v1 left over', async () => {
  const tree = newTree({ controllers: [] });
  const root = join(tree.root, '..');
  const { mode, mountPoint, available, v1, missing } = await detect({
    root,
    procRoot: proc(tree, v1Mount(root, 'memory') + v1Mount(root, 'cpu,cpuacct') + v2Mount(tree.root)),
    wanted: ['cpu', 'memory'],
  });
  assert.deepEqual([mode, mountPoint, available], ['hybrid', tree.root, []]);
  assert.deepEqual(v1, ['cpu', 'cpuacct', 'memory']);
  assert.deepEqual(missing, [
    { controller: 'cpu', why: 'v1' },
    { controller: 'memory', why: 'v1' },
  ]);
});

test('a machine with v1 alone, and one with nothing, are told without an error', async () => {
  const tree = newTree();
  const root = join(tree.root, '../elsewhere');
  const v1 = await detect({ root, procRoot: proc(tree, v1Mount(root, 'memory')) });
  assert.deepEqual([v1.mode, v1.available, v1.writable, v1.v1], ['v1', [], false, ['memory']]);
  const none = await detect({ root, procRoot: join(tree.root, '../no-proc') });
  assert.deepEqual([none.mode, none.mountPoint, none.writable], ['none', undefined, false]);
});

test('without a mountinfo the tree itself is believed', async () => {
  const tree = newTree({ controllers: ['cpu'] });
  const { mode, available } = await detect({ root: tree.root, procRoot: join(tree.root, '../no-proc') });
  assert.deepEqual([mode, available], ['v2', ['cpu']]);
});

test('a read-only tree is told as such', async () => {
  const tree = newTree();
  const { writable, notWritable } = await detect({ root: tree.root, procRoot: proc(tree, v2Mount(tree.root, 'ro')) });
  assert.deepEqual([writable, notWritable], [false, 'EROFS']);
});

test('a tree without cgroup.procs that we may write is not writable', async () => {
  const tree = newTree();
  const procRoot = proc(tree, v2Mount(tree.root));
  mkdirSync(join(tree.root, 'foreign'));
  const { writable, notWritable } = await detect({ root: tree.root, procRoot, subtree: 'foreign' });
  assert.deepEqual([writable, notWritable], [false, 'ENOENT']);
});

test('/proc/cgroups says which are on', () => {
  const parsed = parseProcCgroups(table({ cpu: 1, memory: 0 }));
  assert.deepEqual(
    [...parsed],
    [
      ['cpu', true],
      ['memory', false],
    ],
  );
});
