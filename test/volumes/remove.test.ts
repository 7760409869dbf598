import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import { type Mounter, systemMounter } from '../../src/volumes/mount.ts';
import { removeTree } from '../../src/volumes/remove.ts';
import { container, first, folder, House, mountsUnder, podWith, swapForLinks } from './house.ts';

const uid = 'uid-1' as PodUid;

async function remove(dir: string, name: string): Promise<void> {
  const parent = await open(dir);
  try {
    await removeTree(parent, name);
  } finally {
    await parent.close();
  }
}

const openFiles = (): number => readdirSync('/proc/self/fd').length;

test('links are removed and never followed', async () => {
  const dir = folder();
  mkdirSync(join(dir, 'outside/sub'), { recursive: true });
  writeFileSync(join(dir, 'outside/sub/f'), 'x');
  mkdirSync(join(dir, 'pod/a'), { recursive: true });
  symlinkSync(join(dir, 'outside'), join(dir, 'pod/a/link'));
  symlinkSync('../../outside/sub/f', join(dir, 'pod/a/file'));
  symlinkSync(join(dir, 'outside'), join(dir, 'top'));
  await remove(dir, 'pod');
  await remove(dir, 'top');
  await remove(dir, 'never there');
  assert.deepEqual(readdirSync(dir), ['outside']);
  assert.equal(readFileSync(join(dir, 'outside/sub/f'), 'utf8'), 'x');
});

test('a folder swapped for a link while it is removed takes nothing else with it', async () => {
  const dir = folder();
  mkdirSync(join(dir, 'outside'));
  for (let i = 0; i < 50; i++) writeFileSync(join(dir, `outside/${i}`), 'x');
  let left = 0;
  for (let round = 0; round < 5; round++) {
    mkdirSync(join(dir, 'pod'), { recursive: true });
    mkdirSync(join(dir, 'pod/a'), { recursive: true });
    for (let i = 0; i < 60; i++) mkdirSync(join(dir, `pod/before-${i}`), { recursive: true });
    const swapper = swapForLinks(join(dir, 'pod/a'), join(dir, 'pod/hidden'), join(dir, 'outside'));
    // it may find new things there all the time: somebody else is at work
    await remove(dir, 'pod').catch(() => left++);
    swapper.kill('SIGKILL');
    await new Promise((resolve) => swapper.on('close', resolve));
    await remove(dir, 'pod');
  }
  assert.equal(readdirSync(join(dir, 'outside')).length, 50, `after ${left} rounds with something left`);
});

test('names that are no text and folders in folders without end go, with few descriptors', async () => {
  const dir = folder();
  mkdirSync(join(dir, 'pod'));
  execFileSync('sh', [
    '-c',
    `cd '${dir}/pod' && printf x > "$(printf 'a\\377b')" && mkdir "$(printf '\\376dir')" && printf x > "$(printf '\\376dir/\\375')"`,
  ]);
  mkdirSync(join(dir, 'pod', ...Array(500).fill('d')), { recursive: true });
  execFileSync('sh', ['-c', `cd '${dir}/pod' && mkdir .podsched-removed-0 && echo x > .podsched-removed-1`]);
  const before = openFiles();
  let most = 0;
  const watching = setInterval(() => {
    most = Math.max(most, openFiles());
  }, 1);
  await remove(dir, 'pod');
  clearInterval(watching);
  assert.deepEqual(readdirSync(dir), []);
  assert.equal(openFiles(), before);
  assert.ok(most > before && most < before + 150, `${most} descriptors`);
});

test('a file that a privileged container made immutable is told, and keeps nothing else from going', async (t) => {
  const dir = folder();
  mkdirSync(join(dir, 'pod/a'), { recursive: true });
  for (const name of ['0', 'm', 'z']) {
    writeFileSync(join(dir, 'pod', name), 'x');
    writeFileSync(join(dir, 'pod/a', name), 'x');
  }
  try {
    execFileSync('chattr', ['+i', join(dir, 'pod/a/m')], { stdio: 'ignore' });
  } catch {
    return t.skip('no immutable files here');
  }
  try {
    await assert.rejects(remove(dir, 'pod'), /EPERM/);
    assert.deepEqual([readdirSync(join(dir, 'pod')), readdirSync(join(dir, 'pod/a'))], [['a'], ['m']]);
  } finally {
    execFileSync('chattr', ['-i', join(dir, 'pod/a/m')]);
  }
  await remove(dir, 'pod');
  assert.deepEqual(readdirSync(dir), []);
});

test('a mount inside is never entered, a bind mount of the same disk neither', async () => {
  const dir = folder();
  mkdirSync(join(dir, 'data'));
  writeFileSync(join(dir, 'data/f'), 'precious');
  mkdirSync(join(dir, 'pod/in'), { recursive: true });
  execFileSync('mount', ['--bind', join(dir, 'data'), join(dir, 'pod/in')]);
  await assert.rejects(remove(dir, 'pod'), /something is still mounted inside/);
  assert.equal(readFileSync(join(dir, 'data/f'), 'utf8'), 'precious');
  execFileSync('umount', [join(dir, 'pod/in')]);
  execFileSync('mount', ['--bind', join(dir, 'data'), join(dir, 'pod')]);
  await assert.rejects(remove(dir, 'pod'), /something is mounted at pod/);
  execFileSync('umount', [join(dir, 'pod')]);
  const file = join(dir, 'pod/file');
  writeFileSync(file, '');
  execFileSync('mount', ['--bind', join(dir, 'data/f'), file]);
  await assert.rejects(remove(dir, 'pod'), /EBUSY/);
  assert.equal(readFileSync(join(dir, 'data/f'), 'utf8'), 'precious');
});

/** A pod with all that can be left behind, and a disk of the node. */
async function busyPod(): Promise<{ house: House; disk: string }> {
  const house = new House();
  const disk = join(house.dir, 'disk');
  mkdirSync(join(disk, 'sub'), { recursive: true });
  writeFileSync(join(disk, 'sub/f'), 'precious');
  const desired = podWith(
    [{ name: 'own' }, { name: 'memory', emptyDir: { medium: 'Memory' } }, { name: 'disk', hostPath: { path: disk } }],
    {
      containers: [
        container('c', {
          volumeMounts: [
            { name: 'own', mountPath: '/own' },
            { name: 'own', mountPath: '/part', subPath: 'a/b' },
            { name: 'memory', mountPath: '/memory' },
            { name: 'memory', mountPath: '/mpart', subPath: 'x' },
            { name: 'disk', mountPath: '/disk' },
            { name: 'disk', mountPath: '/dpart', subPath: 'sub' },
            { name: 'disk', mountPath: '/dfile', subPath: 'sub/f' },
          ],
        }),
      ],
    },
  );
  await house.manager.setUp(desired);
  await house.manager.mounts(desired, first(desired), 0, ['10.0.0.5']);
  writeFileSync(house.emptyDir('own', 'f'), 'x');
  symlinkSync(disk, house.emptyDir('own', 'link'));
  writeFileSync(house.emptyDir('memory', 'f'), 'x');
  return { house, disk };
}

test('a pod’s folder goes with its mounts; the node’s disk stays as it is', async () => {
  const { house, disk } = await busyPod();
  assert.equal(mountsUnder(house.dir).length, 5);
  await house.manager.tearDown(uid);
  assert.deepEqual(readdirSync(house.podsDir), []);
  assert.deepEqual(mountsUnder(house.dir), []);
  assert.equal(readFileSync(join(disk, 'sub/f'), 'utf8'), 'precious');
  await house.manager.tearDown(uid);
});

test('the same without knowing the pod: folders of unknown pods go when all are known, and only those', async () => {
  const { house, disk } = await busyPod();
  mkdirSync(join(house.podsDir, 'lost+found'));
  writeFileSync(join(house.podsDir, 'file'), '');
  symlinkSync(disk, join(house.podsDir, 'link'));
  const agent = house.newAgent();
  await agent.retain(new Set([uid]));
  assert.ok(existsSync(house.emptyDir('own', 'f')));
  await agent.retain(new Set());
  assert.deepEqual(readdirSync(house.podsDir).sort(), ['file', 'link', 'lost+found']);
  assert.equal(readFileSync(join(disk, 'sub/f'), 'utf8'), 'precious');
  assert.deepEqual(house.warnings, []);
});

test('what others mounted inside a volume stops the removal before anything is deleted, and it goes on later', async () => {
  const { house, disk } = await busyPod();
  const inside = house.emptyDir('own', 'mnt');
  mkdirSync(inside);
  const source = await open(disk);
  await systemMounter.bind(source, inside).finally(() => source.close());
  await assert.rejects(house.manager.tearDown(uid), /something is still mounted at .*own\/mnt/);
  assert.ok(existsSync(house.emptyDir('own', 'f')));
  assert.equal(readFileSync(join(disk, 'sub/f'), 'utf8'), 'precious');
  for (let i = 0; i < 3; i++) await house.manager.retain(new Set());
  assert.equal(house.warnings.length, 1, 'one line for one cause');
  execFileSync('umount', [inside]);
  await house.manager.retain(new Set());
  assert.deepEqual(readdirSync(house.podsDir), []);
  assert.equal(readFileSync(join(disk, 'sub/f'), 'utf8'), 'precious');
});

test('content where only a binding should be is not deleted: behind it may be somebody’s data', async () => {
  const { house } = await busyPod();
  execFileSync('umount', [house.path('volume-subpaths/disk/c/5')]);
  writeFileSync(house.path('volume-subpaths/disk/c/5/f'), 'x');
  await assert.rejects(house.manager.tearDown(uid), /ENOTEMPTY/);
  assert.ok(existsSync(house.path('volume-subpaths/disk/c/5/f')));
});

test('a tear-down waits for what is under way, and a set-up after it begins anew', async () => {
  const house = new House();
  const desired = podWith([{ name: 'own' }]);
  const setUp = house.manager.setUp(desired);
  const tearDown = house.manager.tearDown(uid);
  await Promise.all([setUp, tearDown]);
  assert.deepEqual(readdirSync(house.podsDir), []);
  await house.manager.setUp(desired);
  assert.ok(existsSync(house.emptyDir('own')));
});

test('a pod that came after the caller looked is not taken for a former one; when it stays unknown it is', async () => {
  const house = new House();
  await house.manager.setUp(podWith([{ name: 'own' }]));
  await house.manager.retain(new Set());
  assert.ok(existsSync(house.emptyDir('own')));
  await house.manager.retain(new Set([uid]));
  await house.manager.retain(new Set());
  assert.ok(existsSync(house.emptyDir('own')), 'it was known in between');
  await house.manager.retain(new Set());
  assert.deepEqual(readdirSync(house.podsDir), []);
});

test('a folder that nobody knows stays as long as something of its pod runs, or nobody can tell', async () => {
  const house = new House();
  await house.manager.setUp(podWith([{ name: 'own' }]));
  let answer = async (): Promise<boolean> => true;
  const next = house.newAgent({ lives: () => answer() });
  await next.retain(new Set());
  answer = () => Promise.reject(new Error('the runtime does not answer'));
  await next.retain(new Set());
  assert.ok(existsSync(house.emptyDir('own')));
  assert.equal(house.warnings.length, 2);
  answer = async () => false;
  await next.retain(new Set());
  assert.deepEqual(readdirSync(house.podsDir), []);
});

test('a disk that the node mounts below a hostPath comes into a subPath of it, and stays mounted when the pod goes', async () => {
  const house = new House();
  const disk = join(house.dir, 'disk');
  mkdirSync(join(disk, 'sub'), { recursive: true });
  // as every mount is on a machine that systemd started
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', disk]);
  execFileSync('mount', ['--make-shared', disk]);
  mkdirSync(join(disk, 'sub/inner/deep'), { recursive: true });
  const desired = podWith([{ name: 'disk', hostPath: { path: disk } }], {
    containers: [container('c', { volumeMounts: [{ name: 'disk', mountPath: '/d', subPath: 'sub' }] })],
  });
  await house.manager.setUp(desired);
  await house.manager.mounts(desired, first(desired), 0, []);
  const inner = join(disk, 'sub/inner');
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', inner]);
  execFileSync('mount', ['--make-shared', inner]);
  mkdirSync(join(inner, 'deep'));
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', join(inner, 'deep')]);
  writeFileSync(join(inner, 'deep/f'), 'precious');
  const bound = 'pods/uid-1/volume-subpaths/disk/c/0';
  assert.ok(mountsUnder(house.dir).includes(`${bound}/inner/deep`), 'it came into the binding');
  await house.manager.tearDown(uid);
  assert.deepEqual(readdirSync(house.podsDir), []);
  assert.deepEqual(mountsUnder(house.dir), ['disk', 'disk/sub/inner', 'disk/sub/inner/deep']);
  assert.equal(readFileSync(join(inner, 'deep/f'), 'utf8'), 'precious');
});

test('a subPath of another folder than before is bound anew, though a disk came into the old one', async () => {
  const house = new House();
  const disk = join(house.dir, 'disk');
  mkdirSync(disk);
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', disk]);
  execFileSync('mount', ['--make-shared', disk]);
  mkdirSync(join(disk, 'sub/inner'), { recursive: true });
  const desired = podWith([{ name: 'disk', hostPath: { path: disk } }], {
    containers: [container('c', { volumeMounts: [{ name: 'disk', mountPath: '/d', subPath: 'sub' }] })],
  });
  await house.manager.setUp(desired);
  await house.manager.mounts(desired, first(desired), 0, []);
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', join(disk, 'sub/inner')]);
  renameSync(join(disk, 'sub'), join(disk, 'old'));
  mkdirSync(join(disk, 'sub/new'), { recursive: true });
  await house.manager.mounts(desired, first(desired), 1, []);
  assert.deepEqual(readdirSync(house.path('volume-subpaths/disk/c/0')), ['new']);
  assert.deepEqual(mountsUnder(house.dir), ['disk', 'disk/old/inner', 'pods/uid-1/volume-subpaths/disk/c/0']);
});

/** The folder of a pod whose agent is gone, with volumes of every kind in memory, and one of them half made. */
function leftover(house: House): void {
  for (const kind of ['secret', 'projected', 'downward-api', 'empty-dir']) {
    const dir = house.path(`volumes/kubernetes.io~${kind}/v`);
    mkdirSync(dir, { recursive: true });
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', dir]);
    mkdirSync(join(dir, '..2026_01_01'));
    writeFileSync(join(dir, '..2026_01_01/key'), 'x');
    symlinkSync('..2026_01_01', join(dir, '..data'));
    symlinkSync('..data/key', join(dir, 'key'));
  }
  mkdirSync(house.path('volumes/kubernetes.io~secret/unmounted'));
  mkdirSync(house.path('volumes/kubernetes.io~configmap/c'), { recursive: true });
  symlinkSync('/etc', house.path('volumes/kubernetes.io~configmap/c/..data'));
  mkdirSync(house.path('plugins/kubernetes.io~empty-dir/v'), { recursive: true });
  writeFileSync(house.path('plugins/kubernetes.io~empty-dir/v/ready'), '');
  mkdirSync(house.path('containers/c'), { recursive: true });
  writeFileSync(house.path('containers/c/00000000'), 'bye');
  writeFileSync(house.path('etc-hosts'), '');
}

test('what a crash left of every kind of volume in memory is unmounted and goes, once, at the first look', async () => {
  const house = new House();
  leftover(house);
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', house.path('volumes/kubernetes.io~secret/v')]); // mounted twice
  assert.equal(mountsUnder(house.dir).length, 5);
  let asked = 0;
  const mountPoints = () => {
    asked++;
    return systemMounter.mountPoints();
  };
  const agent = house.newAgent({ mounter: { ...systemMounter, mountPoints } });
  await agent.retain(new Set());
  assert.deepEqual([mountsUnder(house.dir), readdirSync(house.podsDir), house.warnings], [[], [], []]);
  const looks = asked;
  await agent.retain(new Set());
  assert.equal(asked, looks, 'there is nothing to look at any more');
});

test('a removal that was killed anywhere in between is gone on with by the next agent', async () => {
  let left = 1;
  for (let steps = 0; left > 0 && steps < 40; steps++) {
    const house = new House();
    leftover(house);
    let done = 0;
    const killed: Mounter = {
      ...systemMounter,
      unmount: async (target) => {
        if (done++ === steps) throw new Error('killed');
        await systemMounter.unmount(target);
      },
    };
    await house.newAgent({ mounter: killed }).retain(new Set());
    left = readdirSync(house.podsDir).length;
    await house.newAgent().retain(new Set());
    assert.deepEqual([mountsUnder(house.dir), readdirSync(house.podsDir)], [[], []], `killed at unmount ${steps}`);
  }
  assert.equal(left, 0);
});

test('what a container mounted in a volume in memory keeps that volume, its content and its pod’s folder', async () => {
  const house = new House();
  leftover(house);
  const inside = house.path('volumes/kubernetes.io~empty-dir/v/mnt');
  mkdirSync(join(house.dir, 'disk'));
  writeFileSync(join(house.dir, 'disk/f'), 'precious');
  mkdirSync(inside);
  execFileSync('mount', ['--bind', join(house.dir, 'disk'), inside]);
  await house.newAgent().retain(new Set());
  assert.equal(house.warnings.length, 1);
  assert.ok(existsSync(house.path('volumes/kubernetes.io~empty-dir/v/key')));
  assert.equal(readFileSync(join(house.dir, 'disk/f'), 'utf8'), 'precious');
  execFileSync('umount', [inside]);
  await house.manager.retain(new Set());
  assert.deepEqual(readdirSync(house.podsDir), []);
  assert.equal(readFileSync(join(house.dir, 'disk/f'), 'utf8'), 'precious');
});
