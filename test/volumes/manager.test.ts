import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { decodeObject } from '../../src/api/decode.ts';
import { toDesiredPod } from '../../src/api/instance.ts';
import type { PodUid } from '../../src/api/objects.ts';
import type { Pod } from '../../src/api/v1.ts';
import type { Mount } from '../../src/container/runtime.ts';
import { VolumeError } from '../../src/volumes/volumeError.ts';
import { container, first, House, mode, mountsUnder, pod, podWith, snapshot } from './house.ts';

const conformance = new URL('../conformance/kubelet-1.32/', import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, conformance), 'utf8');

interface Recorded {
  readonly container_path: string;
  readonly host_path: string;
  readonly readonly?: boolean;
  readonly propagation?: string;
}

/** A mount as the recording writes it. */
const asRecorded = (house: House, root: string, tmp: string, m: Mount): Recorded => ({
  container_path: m.containerPath,
  host_path: m.hostPath
    .replace(root, '<root>/pods')
    .replace('/uid-1/', '/<uid>/')
    .replace(join(house.dir, 'tmp'), '<tmp>')
    .replace(tmp, '<tmp>')
    .replace(/\/[0-9a-f]{8}$/, '/<random>'),
  ...(m.readonly && { readonly: true }),
  ...(m.propagation !== undefined && { propagation: `PROPAGATION_${m.propagation}` }),
});

test('the mounts of the recorded manifests are the kubelet’s, in its order, and then our resolv.conf', async () => {
  const tmp = '/var/tmp/podsched-conformance';
  for (const name of ['001-minimal', '014-hostname-aliases', '018-volumes', '019-mount-propagation', '043-device-privileged']) {
    const house = new House();
    const text = read(`manifests/${name}.yaml`).replaceAll(tmp, join(house.dir, 'tmp'));
    mkdirSync(join(house.dir, 'tmp'));
    const { object, problems } = decodeObject(parse(text), { strict: false });
    assert.deepEqual(problems, []);
    const uid = 'uid-1' as PodUid;
    const desired = toDesiredPod(object as Pod, { uid, source: 'file:x.yaml', nodeName: 'pi', firstSeen: '2026-01-01T00:00:00Z' });
    await house.manager.setUp(desired);
    const mounts = await house.manager.mounts(desired, first(desired), 0, ['10.0.0.5']);
    const containers = JSON.parse(read(`recorded/${name}.json`)).containers as Record<string, { mounts: Recorded[] }>;
    const [theirs] = Object.values(containers);
    const ours = mounts.map((m) => asRecorded(house, house.podsDir, tmp, m));
    assert.deepEqual(ours, [
      ...(theirs?.mounts ?? []),
      { container_path: '/etc/resolv.conf', host_path: '<root>/pods/<uid>/etc-resolv.conf' },
    ]);
    for (const { hostPath } of mounts) assert.ok(existsSync(hostPath), hostPath);
  }
});

test('what stands is not written again: neither by a second look nor by another agent', async () => {
  const house = new House();
  const desired = podWith([{ name: 'disk', emptyDir: {} }, { name: 'memory', emptyDir: { medium: 'Memory' } }, { name: 'sub' }], {
    securityContext: { fsGroup: 2000 },
    containers: [
      container('c', {
        volumeMounts: [
          { name: 'disk', mountPath: '/disk' },
          { name: 'memory', mountPath: '/memory' },
          { name: 'sub', mountPath: '/sub', subPath: 'a/b' },
        ],
      }),
    ],
  });
  await house.manager.setUp(desired);
  await house.manager.mounts(desired, first(desired), 0, ['10.0.0.5']);
  writeFileSync(house.emptyDir('disk', 'mine'), 'kept');
  const before = snapshot(house.dir);
  await house.manager.setUp(desired);
  assert.deepEqual(snapshot(house.dir), before);
  await house.newAgent().setUp(desired);
  assert.deepEqual(snapshot(house.dir), before);
  assert.equal(mountsUnder(house.dir).length, 2, 'one tmpfs and one subPath, each once');
  const mounts = await house.manager.mounts(desired, first(desired), 0, ['10.0.0.5']);
  const changed = snapshot(house.dir).filter((line) => !before.includes(line));
  assert.ok(
    changed.every((line) => line.includes('/containers/c')),
    changed.join('\n'),
  );
  assert.equal(mounts.length, 6);
  assert.equal(mountsUnder(house.dir).length, 2);
});

test('a volume that no container mounts is never made', async () => {
  const house = new House();
  const volumes = [
    { name: 'unused', emptyDir: {} },
    { name: 'gone', hostPath: { path: join(house.dir, 'never'), type: 'Directory' as const } },
    { name: 'init', emptyDir: {} },
  ];
  const desired = pod({ volumes, initContainers: [container('i', { volumeMounts: [{ name: 'init', mountPath: '/i' }] })] });
  await house.manager.setUp(desired);
  assert.deepEqual(readdirSync(house.path('volumes/kubernetes.io~empty-dir')), ['init']);
});

test('after a reboot what was in memory is made anew, and what is on the card is found', async () => {
  const house = new House();
  const desired = podWith([{ name: 'disk' }, { name: 'memory', emptyDir: { medium: 'Memory' } }]);
  await house.manager.setUp(desired);
  writeFileSync(house.emptyDir('disk', 'f'), 'disk');
  writeFileSync(house.emptyDir('memory', 'f'), 'memory');
  execFileSync('umount', [house.emptyDir('memory')]);
  await house.newAgent().setUp(desired);
  assert.equal(readFileSync(house.emptyDir('disk', 'f'), 'utf8'), 'disk');
  assert.deepEqual(readdirSync(house.emptyDir('memory')), []);
  assert.deepEqual(mountsUnder(house.dir), ['pods/uid-1/volumes/kubernetes.io~empty-dir/memory']);
});

test('modes are the kubelet’s whatever the umask is, and a tmpfs has its size', async () => {
  const house = new House();
  const desired = podWith([{ name: 'disk' }, { name: 'memory', emptyDir: { medium: 'Memory', sizeLimit: '8Mi' } }]);
  const before = process.umask(0o077);
  try {
    await house.manager.setUp(desired);
    await house.manager.mounts(desired, first(desired), 0, ['10.0.0.5']);
  } finally {
    process.umask(before);
  }
  assert.equal(mode(house.emptyDir('disk')), '777');
  assert.equal(mode(house.emptyDir('memory')), '1777');
  assert.equal(mode(house.path('etc-hosts')), '644');
  assert.equal(mode(house.path('etc-resolv.conf')), '644');
  const [log] = readdirSync(house.path('containers/c'));
  assert.equal(mode(house.path('containers/c', log ?? '')), '666');
  const { blocks, bsize } = statfsSync(house.emptyDir('memory'));
  assert.equal(blocks * bsize, 8 << 20);
});

test('fsGroup owns both media, with setgid, and the files that are there', async () => {
  const house = new House();
  const desired = podWith([{ name: 'disk' }, { name: 'memory', emptyDir: { medium: 'Memory' } }], { securityContext: { fsGroup: 2000 } });
  await house.manager.setUp(desired);
  for (const name of ['disk', 'memory']) assert.equal(statSync(house.emptyDir(name)).gid, 2000, name);
  assert.equal(mode(house.emptyDir('disk')), '2777');
  assert.equal(mode(house.emptyDir('memory')), '3777');
});

test('what cannot be made is told in the kubelet’s words, all of it, and made when it can be', async () => {
  const house = new House();
  const [gone, typeless] = [join(house.dir, 'never-there'), join(house.dir, 'disk/data')];
  const desired = podWith([
    { name: 'd', hostPath: { path: gone, type: 'Directory' } },
    { name: 'e', emptyDir: {} },
    { name: 'm', hostPath: { path: typeless, type: '' } },
  ]);
  const error = await house.manager.setUp(desired).then(
    () => undefined,
    (e: unknown) => e,
  );
  assert.ok(error instanceof VolumeError);
  assert.deepEqual(
    error.failures.map((f) => f.volume),
    ['d', 'm'],
  );
  assert.equal(
    error.message.split('; ')[0],
    `MountVolume.SetUp failed for volume "d" : hostPath type check failed: ${gone} is not a directory`,
  );
  assert.match(error.message, /volume "m" : hostPath type check failed: \S+ does not exist, and only the types/);
  assert.ok(!existsSync(typeless) && !existsSync(gone), 'never created');
  assert.ok(existsSync(house.emptyDir('e')), 'the others stand');
  await assert.rejects(house.manager.mounts(desired, first(desired), 0, []), /volume "d" is not set up/);
  mkdirSync(gone);
  mkdirSync(typeless, { recursive: true });
  await house.manager.setUp(desired);
  assert.equal((await house.manager.mounts(desired, first(desired), 0, [])).length, 5, 'no address, no /etc/hosts');
});

test('a hostPath that went away while the pod runs disturbs nothing until a container starts, and is not created then', async () => {
  const house = new House();
  const path = join(house.dir, 'usb');
  mkdirSync(path);
  const desired = podWith([{ name: 'usb', hostPath: { path } }]);
  await house.manager.setUp(desired);
  rmSync(path, { recursive: true });
  await house.manager.setUp(desired);
  await assert.rejects(house.manager.mounts(desired, first(desired), 1, ['10.0.0.5']), /usb does not exist/);
  assert.ok(!existsSync(path));
});

test('nothing of ours is mounted where the pod mounts itself', async () => {
  const house = new House();
  const desired = podWith([{ name: 'own' }], {
    containers: [
      container('c', {
        terminationMessagePath: '/last',
        volumeMounts: [
          { name: 'own', mountPath: '/etc/hosts/' },
          { name: 'own', mountPath: 'etc//resolv.conf' },
        ],
      }),
    ],
  });
  await house.manager.setUp(desired);
  const mounts = await house.manager.mounts(desired, first(desired), 0, ['10.0.0.5']);
  assert.deepEqual(
    mounts.map((m) => m.containerPath),
    ['/etc/hosts/', '/etc//resolv.conf', '/last'],
  );
});

test('a read-only root has a read-only resolv.conf; SELinux labels what is ours, each volume once', async () => {
  const house = new House();
  const spec = {
    volumes: [{ name: 'own' }, { name: 'host', hostPath: { path: house.dir } }],
    containers: [
      container('c', {
        securityContext: { readOnlyRootFilesystem: true },
        volumeMounts: [
          { name: 'own', mountPath: '/a' },
          { name: 'own', mountPath: '/b' },
          { name: 'host', mountPath: '/h', readOnly: true, recursiveReadOnly: 'IfPossible' as const },
        ],
      }),
    ],
  };
  const desired = pod(spec);
  const manager = house.newAgent({ seLinux: () => true, recursiveReadOnly: (handler) => handler === 'kata' });
  await manager.setUp(desired);
  const mounts = await manager.mounts(desired, first(desired), 0, ['10.0.0.5'], { handler: 'kata' });
  assert.deepEqual(
    mounts.map((m) => [m.containerPath, m.readonly, m.selinuxRelabel ?? false, m.recursiveReadOnly ?? false]),
    [
      ['/a', false, true, false],
      ['/b', false, false, false],
      ['/h', true, false, true],
      ['/etc/hosts', false, true, false],
      ['/dev/termination-log', false, true, false],
      ['/etc/resolv.conf', true, true, false],
    ],
  );
});

test('each attempt has a new empty file for its last words, and those of attempts long gone are removed', async () => {
  const house = new House();
  const desired = pod({});
  await house.manager.setUp(desired);
  for (let attempt = 0; attempt < 12; attempt++) {
    const mounts = await house.manager.mounts(desired, first(desired), attempt, []);
    const path = mounts.find((m) => m.containerPath === '/dev/termination-log')?.hostPath ?? '';
    assert.match(path, /\/containers\/c\/[0-9a-f]{8}$/);
    assert.equal(readFileSync(path, 'utf8'), '');
    writeFileSync(path, `words of ${attempt}`);
  }
  assert.deepEqual(readdirSync(house.path('containers/c')).sort(), ['00000008', '00000009', '0000000a', '0000000b']);
  await house.manager.mounts(desired, first(desired), 11, []);
  assert.equal(house.read('containers/c/0000000b'), '', 'a second try begins anew');
  assert.equal(house.read('containers/c/0000000a'), 'words of 10');
});

test('on a full card a container starts without a place for its last words, as with the kubelet', async () => {
  const house = new House();
  mkdirSync(house.podsDir);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'nr_inodes=20', 'tmpfs', house.podsDir]);
  const desired = pod({});
  await house.manager.setUp(desired);
  const placesOf = async (attempt: number) =>
    (await house.manager.mounts(desired, first(desired), attempt, ['10.0.0.1'])).map((m) => m.containerPath);
  assert.deepEqual(await placesOf(0), ['/etc/hosts', '/dev/termination-log', '/etc/resolv.conf']);
  for (let i = 0; i < 20; i++) {
    try {
      writeFileSync(join(house.podsDir, `${i}`), '');
    } catch {
      break; // it is full
    }
  }
  assert.deepEqual(await placesOf(1), ['/etc/hosts', '/etc/resolv.conf']);
});

test('subPathExpr takes the container’s environment, and what it comes to stays inside', async () => {
  const house = new House();
  const desired = podWith([{ name: 'own' }], {
    containers: [container('c', { volumeMounts: [{ name: 'own', mountPath: '/o', subPathExpr: '$(NAME)/log' }] })],
  });
  await house.manager.setUp(desired);
  const mount = (value: string) =>
    house.manager.mounts(desired, first(desired), 0, [], { env: (name) => (name === 'NAME' ? value : undefined) });
  await mount('web');
  assert.ok(existsSync(house.emptyDir('own', 'web/log')));
  await assert.rejects(mount('../..'), /must not contain '\.\.'/);
  await assert.rejects(mount('/etc'), /must not be an absolute path/);
  await assert.rejects(mount(''), /missing value for NAME$/);
  await assert.rejects(house.manager.mounts(desired, first(desired), 0, []), /subPathExpr needs the environment/);
});

test('a volume that is mounted and not there, and a UID that is no name, are told', async () => {
  const house = new House();
  const desired = pod({ containers: [container('c', { volumeMounts: [{ name: 'none', mountPath: '/n' }] })] });
  await house.manager.setUp(desired);
  await assert.rejects(
    house.manager.mounts(desired, first(desired), 0, []),
    /^Error: cannot find volume "none" to mount into container "c"$/,
  );
  await assert.rejects(house.manager.setUp(pod({}, { uid: '../x' })), /UID/);
  assert.deepEqual(readdirSync(house.dir), ['pods']);
});

test('stateDir may be a link', async () => {
  const house = new House();
  mkdirSync(join(house.dir, 'real'));
  const link = join(house.dir, 'link');
  execFileSync('ln', ['-s', join(house.dir, 'real'), link]);
  const manager = house.newAgent({ podsDir: join(link, 'pods') });
  const desired = podWith([{ name: 'memory', emptyDir: { medium: 'Memory' } }]);
  await manager.setUp(desired);
  await house.newAgent({ podsDir: join(link, 'pods') }).setUp(desired);
  assert.equal(mountsUnder(house.dir).length, 1, 'found mounted');
  await house.manager.tearDown('uid-1' as PodUid);
  assert.deepEqual(readdirSync(join(house.dir, 'real/pods')), []);
  renameSync(join(house.dir, 'real'), join(house.dir, 'moved'));
});
