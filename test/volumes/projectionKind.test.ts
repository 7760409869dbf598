import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync, renameSync, statSync } from 'node:fs';
import { test } from 'node:test';
import type { DesiredPod } from '../../src/api/desired.ts';
import type { ApiObject, PodUid, Source } from '../../src/api/objects.ts';
import type { ObjectLookup } from '../../src/api/references.ts';
import type { ConfigMap, Secret, Volume } from '../../src/api/v1.ts';
import type { VolumeManager, VolumeManagerDeps } from '../../src/volumes/manager.ts';
import { systemMounter } from '../../src/volumes/mount.ts';
import { VolumeError } from '../../src/volumes/volumeError.ts';
import { FakeMounter } from '../fakes/fakeMounter.ts';
import { container, first, House, mode, mountsUnder, pod, podWith, snapshot } from './house.ts';

const canary = 'c4n4ry-0f-s3cr3t';
const uid = 'uid-1' as PodUid;

/** A house with ConfigMaps and Secrets. */
class Home extends House {
  readonly objects = new Map<string, ApiObject>();
  readonly asked: Source[] = [];
  readonly lookup: ObjectLookup = (kind, namespace, name, source) => {
    this.asked.push(source);
    return namespace === 'default' ? this.objects.get(`${kind}/${name}`) : undefined;
  };

  agent(o: Partial<VolumeManagerDeps> = {}): VolumeManager {
    return this.newAgent({ objects: this.lookup, ...o });
  }

  configMap(name: string, data: ConfigMap['data'] = {}): void {
    this.objects.set(`ConfigMap/${name}`, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });
  }

  secret(name: string, stringData: Secret['stringData'] = {}): void {
    this.objects.set(`Secret/${name}`, { apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData });
  }

  of(kind: string, name: string, ...parts: string[]): string {
    return this.path('volumes', `kubernetes.io~${kind}`, name, ...parts);
  }

  text(kind: string, name: string, ...parts: string[]): string {
    return readFileSync(this.of(kind, name, ...parts), 'utf8');
  }
}

function home(): Home {
  const house = new Home();
  house.agent();
  return house;
}

const conf: Volume = { name: 'conf', configMap: { name: 'app', defaultMode: 0o644 } };
const key: Volume = { name: 'key', secret: { secretName: 'key', defaultMode: 0o400 } };
const all: Volume = { name: 'all', projected: { sources: [{ configMap: { name: 'app' } }, { secret: { name: 'key' } }] } };
const info: Volume = { name: 'info', downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] } };

const withLabels = (desired: DesiredPod, labels: Record<string, string>): DesiredPod => ({
  ...desired,
  pod: { ...desired.pod, metadata: { ...desired.pod.metadata, labels } },
});

const failures = async (work: Promise<void>): Promise<string[]> =>
  work.then(
    () => [],
    (e: unknown) => {
      assert.ok(e instanceof VolumeError, String(e));
      return e.failures.map((f) => `${f.volume}: ${f.message}`);
    },
  );

test('each kind lies where the kubelet has it; all but configMap are file systems in memory, of a bounded size', async () => {
  const house = home();
  house.configMap('app', { 'a.conf': 'A' });
  house.secret('key', { pin: canary });
  const desired = podWith([conf, key, all, info]);
  await house.manager.setUp(desired);
  assert.deepEqual(
    [house.text('configmap', 'conf', 'a.conf'), house.text('secret', 'key', 'pin'), house.text('projected', 'all', 'pin')],
    ['A', canary, canary],
  );
  assert.equal(house.text('downward-api', 'info', 'labels'), '');
  const below = 'pods/uid-1/volumes/kubernetes.io~';
  assert.deepEqual(mountsUnder(house.dir).sort(), [`${below}downward-api/info`, `${below}projected/all`, `${below}secret/key`]);
  assert.match(execFileSync('findmnt', ['-no', 'FSTYPE,OPTIONS', house.of('secret', 'key')], { encoding: 'utf8' }), /^tmpfs .*size=65536k/);
  assert.deepEqual([mode(house.of('secret', 'key', 'pin')), mode(house.of('configmap', 'conf'))], ['400', '777']);
  const mounts = await house.manager.mounts(desired, first(desired), 0, ['10.0.0.1']);
  assert.deepEqual(
    mounts.slice(0, 4).map((m) => [m.hostPath, m.containerPath, m.readonly]),
    [
      [house.of('configmap', 'conf'), '/conf', true],
      [house.of('secret', 'key'), '/key', true],
      [house.of('projected', 'all'), '/all', true],
      [house.of('downward-api', 'info'), '/info', true],
    ],
  );
  await house.manager.tearDown(uid);
  assert.deepEqual([mountsUnder(house.dir), readdirSync(house.podsDir)], [[], []]);
});

test('the pod waits with the kubelet’s words for what is missing, nothing is made for it, and it goes on when it comes', async () => {
  const house = home();
  const desired = podWith([conf, key, { name: 'maybe', configMap: { name: 'none', optional: true } }]);
  assert.deepEqual(await failures(house.manager.setUp(desired)), ['conf: configmap "app" not found', 'key: secret "key" not found']);
  assert.ok(!existsSync(house.of('secret', 'key')));
  assert.deepEqual(
    readdirSync(house.of('configmap', 'maybe')).filter((n) => !n.startsWith('..')),
    [],
    'an optional one is empty',
  );
  house.configMap('app', { a: '1' });
  assert.deepEqual(await failures(house.manager.setUp(desired)), ['key: secret "key" not found']);
  house.secret('key', { pin: canary });
  await house.manager.setUp(desired);
  assert.equal(house.text('configmap', 'conf', 'a'), '1');
  house.configMap('none', { late: 'x' });
  await house.manager.refresh(desired);
  assert.equal(house.text('configmap', 'maybe', 'late'), 'x');
});

test('files follow objects and labels; where nothing changed no disk is looked at', async () => {
  const house = home();
  house.configMap('app', { a: '1', b: '1' });
  house.secret('key', { pin: canary });
  const desired = podWith([conf, key, all, info]);
  await house.manager.setUp(desired);
  const before = snapshot(house.path('volumes'));
  // nothing is there to be looked at, so a look would make it anew
  renameSync(house.path('volumes'), house.path('hidden'));
  await house.manager.refresh(desired);
  house.configMap('app', { b: '1', a: '1' });
  await house.manager.refresh(desired);
  await house.manager.refresh(podWith([conf, key, all, info]));
  assert.ok(!existsSync(house.path('volumes')));
  renameSync(house.path('hidden'), house.path('volumes'));
  assert.deepEqual(snapshot(house.path('volumes')), before);

  house.configMap('app', { a: '2', c: '' });
  const labelled = withLabels(desired, { app: 'cam' });
  await house.manager.refresh(labelled);
  assert.deepEqual([house.text('configmap', 'conf', 'a'), house.text('projected', 'all', 'a')], ['2', '2']);
  assert.deepEqual(
    readdirSync(house.of('configmap', 'conf'))
      .filter((n) => !n.startsWith('..'))
      .sort(),
    ['a', 'c'],
  );
  assert.equal(house.text('downward-api', 'info', 'labels'), 'app="cam"');
  const [secretBefore] = before.filter((line) => line.startsWith('kubernetes.io~secret/key/..2'));
  assert.ok(snapshot(house.path('volumes')).includes(secretBefore ?? ''), 'the Secret did not change');
});

test('what is gone while the pod runs leaves its files, is told each time, and follows again when it is back', async () => {
  const house = home();
  house.configMap('app', { a: '1' });
  house.secret('key', { pin: canary });
  const items: Volume = { name: 'one', configMap: { name: 'app', items: [{ key: 'a', path: 'a' }] } };
  const desired = podWith([items, key, info]);
  await house.manager.setUp(desired);
  const before = snapshot(house.path('volumes'));
  house.configMap('app', {});
  house.objects.delete('Secret/key');
  const told = ['one: configmap references non-existent config key: a', 'key: secret "key" not found'];
  assert.deepEqual(await failures(house.manager.refresh(desired)), told);
  assert.deepEqual(await failures(house.manager.refresh(desired)), told);
  assert.deepEqual(snapshot(house.path('volumes')), before);
  // one that cannot follow keeps no other from following
  assert.deepEqual(await failures(house.manager.refresh(withLabels(desired, { x: 'y' }))), told);
  assert.equal(house.text('downward-api', 'info', 'labels'), 'x="y"');
  house.configMap('app', { a: '1' });
  house.secret('key', { pin: `${canary}2` });
  await house.manager.refresh(desired);
  assert.equal(house.text('secret', 'key', 'pin'), `${canary}2`);
});

test('after an agent restart the content is compared once; after a reboot what was in memory is made anew', async () => {
  const house = home();
  house.configMap('app', { a: '1' });
  house.secret('key', { pin: canary });
  const desired = podWith([conf, key]);
  await house.manager.setUp(desired);
  const before = snapshot(house.path('volumes'));
  house.agent();
  await house.manager.setUp(desired);
  assert.deepEqual(snapshot(house.path('volumes')), before);
  // changed while no agent ran
  house.configMap('app', { a: '2' });
  house.agent();
  await house.manager.setUp(desired);
  assert.equal(house.text('configmap', 'conf', 'a'), '2');
  execFileSync('umount', [house.of('secret', 'key')]);
  assert.deepEqual(readdirSync(house.of('secret', 'key')), [], 'nothing of it ever lay on the disk');
  house.agent();
  await house.manager.setUp(desired);
  assert.equal(house.text('secret', 'key', 'pin'), canary);
  assert.equal(mountsUnder(house.dir).length, 1);
});

test('an agent that comes to a running pod takes the files that stand for it, and tells what they lack; a pod that does not run waits', async () => {
  const house = home();
  house.configMap('app', { a: '1' });
  house.secret('key', { pin: canary });
  const desired = podWith([conf, key, info]);
  await house.manager.setUp(desired);
  const before = snapshot(house.path('volumes'));
  house.objects.clear();
  house.agent();
  const told = ['conf: configmap "app" not found', 'key: secret "key" not found'];
  assert.deepEqual(await failures(house.manager.setUp(desired)), told);
  house.agent();
  await house.manager.setUp(desired, { runs: true });
  assert.deepEqual(await failures(house.manager.refresh(desired)), told);
  assert.equal((await house.manager.mounts(desired, first(desired), 1, [])).length > 3, true);
  assert.deepEqual(snapshot(house.path('volumes')), before);
  // what is gone stands for nobody
  execFileSync('umount', [house.of('secret', 'key')]);
  house.agent();
  assert.deepEqual(await failures(house.manager.setUp(desired, { runs: true })), ['key: secret "key" not found']);
});

test('a Secret never comes to lie on the disk: without memory for it there is no volume, and the text has nothing of it', async () => {
  const house = home();
  const mounter = new FakeMounter();
  mounter.refuse = (what) => (what.startsWith('tmpfs') ? new Error('mount: permission denied.') : undefined);
  house.agent({ mounter });
  house.configMap('app', { a: '1' });
  house.secret('key', { pin: canary });
  const desired = podWith([conf, key, all]);
  assert.deepEqual(await failures(house.manager.setUp(desired)), ['key: mount: permission denied.', 'all: mount: permission denied.']);
  assert.deepEqual([readdirSync(house.of('secret', 'key')), readdirSync(house.of('projected', 'all'))], [[], []]);
  assert.equal(house.text('configmap', 'conf', 'a'), '1');
  // said to be mounted, and gone by the time it is written to
  let looks = 0;
  house.agent({ mounter: { ...systemMounter, mountPoints: async () => (looks++ === 0 ? [house.of('secret', 'key')] : []) } });
  assert.deepEqual(await failures(house.manager.setUp(podWith([key]))), ['key: its file system in memory went away']);
  assert.deepEqual(readdirSync(house.of('secret', 'key')), []);
});

test('a kernel that cannot keep memory from being swapped out is asked once', async () => {
  const house = home();
  const options: string[] = [];
  const mounter = {
    ...systemMounter,
    mount: async (type: 'tmpfs' | 'hugetlbfs', target: string, o: readonly string[]) => {
      options.push(o.join(','));
      if (o.includes('noswap')) throw new Error('bad option');
      await systemMounter.mount(type, target, o);
    },
  };
  house.agent({ mounter, nodeMemoryBytes: 128 * 2 ** 20 });
  house.secret('key', { pin: canary });
  house.configMap('app', {});
  await house.manager.setUp(podWith([key, all]));
  assert.deepEqual(options, ['size=33554432,noswap', 'size=33554432', 'size=33554432']);
});

test('files that do not fit are told, and what was there stays', async () => {
  const house = home();
  house.agent({ nodeMemoryBytes: 4 * 2 ** 20 });
  house.secret('key', { pin: 'x' });
  const desired = podWith([key]);
  await house.manager.setUp(desired);
  house.secret('key', { pin: 'x'.repeat(2 ** 20) });
  assert.deepEqual(await failures(house.manager.refresh(desired)), ['key: no space left for its files']);
  assert.equal(house.text('secret', 'key', 'pin'), 'x');
  house.secret('key', { pin: 'y' });
  await house.manager.refresh(desired);
  assert.deepEqual([house.text('secret', 'key', 'pin'), readdirSync(house.of('secret', 'key')).length], ['y', 3]);
});

test('fsGroup: files and folders are the group’s, before and after a change, whatever the umask is', async () => {
  const house = home();
  house.configMap('app', { a: '1' });
  house.secret('key', { pin: canary });
  const desired = podWith([conf, key], { securityContext: { fsGroup: 2000 } });
  const before = process.umask(0o077);
  try {
    await house.manager.setUp(desired);
    house.secret('key', { pin: 'new' });
    await house.manager.refresh(desired);
  } finally {
    process.umask(before);
  }
  const of = (path: string): string => `${statSync(path).gid} ${mode(path)}`;
  assert.deepEqual([of(house.of('secret', 'key', 'pin')), of(house.of('secret', 'key', '..data'))], ['2000 440', '2000 2755']);
  assert.deepEqual([of(house.of('configmap', 'conf', 'a')), of(house.of('configmap', 'conf'))], ['2000 644', '2000 2777']);
  assert.equal(lstatSync(house.of('configmap', 'conf', 'a')).gid, 2000);
  const written = snapshot(house.path('volumes'));
  house.agent();
  await house.manager.setUp(desired);
  assert.deepEqual(snapshot(house.path('volumes')), written);
});

test('a subPath keeps the file of its start; the volume itself follows', async () => {
  const house = home();
  house.configMap('app', { a: '1' });
  const desired = pod({
    volumes: [conf],
    containers: [container('c', { volumeMounts: [{ name: 'conf', mountPath: '/etc/a', subPath: 'a' }] })],
  });
  await house.manager.setUp(desired);
  const mountOf = async (attempt: number) => (await house.manager.mounts(desired, first(desired), attempt, []))[0];
  const mount = await mountOf(0);
  assert.equal(mount?.readonly, true);
  const path = mount?.hostPath ?? '';
  assert.equal(readFileSync(path, 'utf8'), '1');
  house.configMap('app', { a: '2' });
  await house.manager.refresh(desired);
  assert.deepEqual([readFileSync(path, 'utf8'), house.text('configmap', 'conf', 'a')], ['1', '2']);
  await mountOf(1);
  assert.equal(readFileSync(path, 'utf8'), '2', 'the next start has the new one');
  await house.manager.tearDown(uid);
});

test('a volume that is mounted inside finds its folder; where it would hide a file, that is told', async () => {
  const house = home();
  house.configMap('app', { a: '1' });
  const mounts = (inner: string) => [
    { name: 'conf', mountPath: '/etc/app' },
    { name: 'data', mountPath: `/etc/app/${inner}` },
  ];
  const with_ = (inner: string) =>
    pod({ volumes: [conf, { name: 'data', emptyDir: {} }], containers: [container('c', { volumeMounts: mounts(inner) })] });
  await house.manager.setUp(with_('data/deep'));
  assert.ok(statSync(house.of('configmap', 'conf', 'data/deep')).isDirectory());
  house.agent();
  assert.deepEqual(await failures(house.manager.setUp(with_('a/x'))), ['conf: "a" is a file of it, and another volume is mounted there']);
});

test('the lookup is asked as the pod’s source, and only for its namespace', async () => {
  const house = home();
  house.configMap('app', { a: '1' });
  await house.manager.setUp({ ...podWith([conf]), source: 'mqtt:node' });
  assert.deepEqual([...new Set(house.asked)], ['mqtt:node']);
  house.agent();
  const elsewhere = { ...podWith([conf]), namespace: 'kitchen' };
  assert.deepEqual(await failures(house.manager.setUp(elsewhere)), ['conf: configmap "app" not found']);
});

test('what a torn-down pod had is forgotten; a refresh of a pod that was not set up does nothing', async () => {
  const house = home();
  house.configMap('app', { a: '1' });
  const desired = podWith([conf]);
  await house.manager.refresh(desired);
  assert.ok(!existsSync(house.podsDir));
  await house.manager.setUp(desired);
  await house.manager.tearDown(uid);
  await house.manager.refresh(desired);
  assert.ok(!existsSync(house.path()));
  await house.manager.setUp(desired);
  assert.equal(house.text('configmap', 'conf', 'a'), '1');
  assert.equal(realpathSync(house.of('configmap', 'conf', 'a')).startsWith(house.of('configmap', 'conf', '..2')), true);
});
