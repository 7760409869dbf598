import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DesiredPod } from '../../src/api/desired.ts';
import type { ConfigMap, Container, PodSpec, Secret } from '../../src/api/v1.ts';
import { container, desiredPod, House } from './house.ts';

const asked = { annotations: { 'podsched.dev/restart-on-change': 'true' } };
const map = (name: string, data: Record<string, string>): ConfigMap => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });
const secret = (stringData: Record<string, string>): Secret => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'db' }, stringData });
const key = (name: string, k: string, o: object = {}): Partial<Container> => ({
  env: [{ name: 'A', valueFrom: { configMapKeyRef: { name, key: k, ...o } } }],
});
const pod = (containers: readonly Container[], spec: Partial<PodSpec> = {}, metadata: object = asked): DesiredPod =>
  desiredPod({ containers, ...spec }, { metadata });

const stopsAndStarts = (house: House): string[] =>
  house
    .deeds()
    .filter((d) => /^(stop|start)Container/.test(d))
    .map((d) => d.replace(/#.*/, ''));

interface Story {
  readonly house: House;
  put(object: ConfigMap | Secret): void;
  /** `stop c` and `start c` of what one sync does. */
  sync(desired: DesiredPod): Promise<string[]>;
}

async function story(objects: readonly (ConfigMap | Secret)[], desired: DesiredPod): Promise<Story> {
  const house = new House();
  const put = (o: ConfigMap | Secret): void => void house.objects.set(`${o.kind}/default/${o.metadata.name}`, o);
  for (const o of objects) put(o);
  const sync = async (wanted: DesiredPod): Promise<string[]> => {
    house.deeds();
    await house.sync(wanted);
    return stopsAndStarts(house);
  };
  await house.settle(desired);
  house.deeds();
  house.events.length = 0;
  return { house, put, sync };
}

test('only the containers that use a changed key restart, in place, and it is told why', async () => {
  const desired = pod([container('a', key('site', 'one')), container('b', key('site', 'two')), container('c')]);
  const s = await story([map('site', { one: '1', two: '2' })], desired);
  assert.deepEqual(await s.sync(desired), []);
  s.put(map('site', { one: '1', two: 'new' }));
  assert.deepEqual(await s.sync(desired), ['stopContainer b', 'startContainer b']);
  assert.deepEqual(
    s.house.events.filter((e) => e.includes('Killing')),
    ['b Normal Killing: Container b: a ConfigMap or Secret it uses changed, will be restarted'],
  );
  assert.deepEqual(await s.sync(desired), []);
  assert.deepEqual(s.house.runtime.find('web', 'b')?.config.envs, [{ key: 'A', value: 'new' }]);
});

test('without the annotation nothing is written, hashed or restarted', async () => {
  const desired = pod([container('a', key('site', 'one'))], {}, {});
  const s = await story([map('site', { one: '1' })], desired);
  s.put(map('site', { one: '2' }));
  assert.deepEqual(await s.sync(desired), []);
  assert.equal(s.house.runtime.find('web', 'a')?.config.annotations['podsched.dev/config-hash'], undefined);
  assert.deepEqual([...s.house.store.entries.keys(), ...s.house.runStore.entries.keys()], []);
});

test('a change made while the agent was away restarts too; the same content does not', async () => {
  const desired = pod([container('a', { envFrom: [{ secretRef: { name: 'db' } }] })]);
  const s = await story([secret({ pw: 'old' })], desired);
  s.house.restartOnChange = s.house.newRestartOnChange();
  s.put(secret({ pw: 'old' }));
  assert.deepEqual(await s.sync(desired), []);
  s.house.restartOnChange = s.house.newRestartOnChange();
  s.put(secret({ pw: 'new' }));
  assert.deepEqual(await s.sync(desired), ['stopContainer a', 'startContainer a']);
});

test('what is written on a container does not let anybody try out values', async () => {
  const marks = new Set<string>();
  for (let i = 0; i < 2; i++) {
    const s = await story([secret({ pw: '1234' })], pod([container('a', { envFrom: [{ secretRef: { name: 'db' } }] })]));
    const mark = s.house.runtime.find('web', 'a')?.config.annotations['podsched.dev/config-hash'];
    assert.match(mark ?? '', /^1:[0-9a-f]{8} Secret\/db=[0-9a-f]{16}$/);
    marks.add(mark ?? '');
  }
  assert.equal(marks.size, 2);
});

test('a missing object, a missing key and a value that no environment can hold leave what runs alone', async () => {
  const desired = pod([
    container('a', {
      env: [
        { name: 'A', valueFrom: { configMapKeyRef: { name: 'site', key: 'one' } } },
        { name: 'B', valueFrom: { secretKeyRef: { name: 'db', key: 'pw' } } },
      ],
    }),
  ]);
  const s = await story([map('site', { one: '1' }), secret({ pw: 'x' })], desired);
  s.house.objects.delete('ConfigMap/default/site');
  s.put(secret({ pw: 'changed' }));
  assert.deepEqual(await s.sync(desired), []);
  s.put(map('site', { other: '1' }));
  assert.deepEqual(await s.sync(desired), []);
  s.put(map('site', { one: '1' }));
  s.put(secret({ pw: 'a\0b' }));
  assert.deepEqual(await s.sync(desired), []);
  s.put(secret({ pw: 'x' }));
  assert.deepEqual(await s.sync(desired), []);
  s.put(secret({ pw: 'y' }));
  assert.deepEqual(await s.sync(desired), ['stopContainer a', 'startContainer a']);
});

test('an optional object that comes is a change; that it goes again is none', async () => {
  const desired = pod([container('a', { envFrom: [{ configMapRef: { name: 'site', optional: true } }] })]);
  const s = await story([], desired);
  s.put(map('site', { A: '1' }));
  assert.deepEqual(await s.sync(desired), ['stopContainer a', 'startContainer a']);
  s.house.objects.delete('ConfigMap/default/site');
  assert.deepEqual(await s.sync(desired), []);
  s.put(map('site', { A: '1' }));
  assert.deepEqual(await s.sync(desired), []);
});

test('an optional key that goes is a change', async () => {
  const desired = pod([container('a', key('site', 'one', { optional: true }))]);
  const s = await story([map('site', { one: '1' })], desired);
  s.put(map('site', {}));
  assert.deepEqual(await s.sync(desired), ['stopContainer a', 'startContainer a']);
});

test('the coming of the annotation restarts nothing, even after a change; changes after it do', async () => {
  const plain = pod([container('a', key('site', 'one'))], {}, {});
  const wanted = pod([container('a', key('site', 'one'))]);
  const s = await story([map('site', { one: '1' })], plain);
  s.put(map('site', { one: '2' }));
  assert.deepEqual(await s.sync(plain), []);
  assert.deepEqual(await s.sync(wanted), []);
  s.house.restartOnChange = s.house.newRestartOnChange();
  await s.house.restartOnChange.load();
  s.put(map('site', { one: '3' }));
  assert.deepEqual(await s.sync(wanted), ['stopContainer a', 'startContainer a']);
});

test('taken away and written again, the annotation counts from then on', async () => {
  const plain = pod([container('a', key('site', 'one'))], {}, {});
  const wanted = pod([container('a', key('site', 'one'))]);
  const s = await story([map('site', { one: '1' })], wanted);
  assert.deepEqual(await s.sync(plain), []);
  s.put(map('site', { one: '2' }));
  assert.deepEqual(await s.sync(plain), []);
  s.house.restartOnChange = s.house.newRestartOnChange();
  await s.house.restartOnChange.load();
  assert.deepEqual(await s.sync(wanted), []);
  s.put(map('site', { one: '3' }));
  assert.deepEqual(await s.sync(wanted), ['stopContainer a', 'startContainer a']);
  assert.equal(s.house.runStore.entries.size, 1);
  await s.house.restartOnChange.retain(new Set());
  assert.equal(s.house.runStore.entries.size, 0);
});

test('a lost key, a lost card and another release’s mark restart nothing', async () => {
  const desired = pod([container('a', key('site', 'one'))]);
  const s = await story([map('site', { one: '1' })], desired);
  s.house.store.entries.clear();
  s.house.restartOnChange = s.house.newRestartOnChange();
  s.put(map('site', { one: '2' }));
  assert.deepEqual(await s.sync(desired), []);
  s.put(map('site', { one: '3' }));
  assert.deepEqual(await s.sync(desired), ['stopContainer a', 'startContainer a']);
  Object.assign(s.house.runtime.find('web', 'a')?.config.annotations ?? {}, { 'podsched.dev/config-hash': '9:whatever' });
  s.put(map('site', { one: '4' }));
  assert.deepEqual(await s.sync(desired), []);
});

test('a key that cannot be read is made anew', async () => {
  const desired = pod([container('a', key('site', 'one'))]);
  const s = await story([map('site', { one: '1' })], desired);
  s.house.store.entries.set('config-hash-key', '{');
  s.house.restartOnChange = s.house.newRestartOnChange();
  s.put(map('site', { one: '2' }));
  assert.deepEqual(await s.sync(desired), []);
  assert.ok(s.house.logged.some((l) => l.startsWith('the key of the marks on containers cannot be read')));
});

test('a pod that never restarts its containers does so for a change: the person asked for it', async () => {
  const desired = pod([container('a', key('site', 'one'))], { restartPolicy: 'Never' });
  const s = await story([map('site', { one: '1' })], desired);
  s.put(map('site', { one: '2' }));
  assert.deepEqual(await s.sync(desired), ['stopContainer a', 'startContainer a']);
});

test('sidecars restart in place; init containers and containers that ended do not run again', async () => {
  const desired = pod([container('a'), container('once', key('site', 'one'))], {
    restartPolicy: 'OnFailure',
    initContainers: [container('first', key('site', 'one')), container('side', { ...key('site', 'one'), restartPolicy: 'Always' })],
  });
  const house = new House();
  const put = (o: ConfigMap): void => void house.objects.set('ConfigMap/default/site', o);
  put(map('site', { one: '1' }));
  await house.sync(desired);
  house.runtime.exit(house.id('first'), 0);
  await house.settle(desired);
  house.runtime.exit(house.id('once'), 0);
  await house.settle(desired);
  house.deeds();
  put(map('site', { one: '2' }));
  await house.settle(desired);
  assert.deepEqual(stopsAndStarts(house), ['stopContainer side', 'startContainer side']);
  assert.ok(house.events.some((e) => e.endsWith('Killing: Init container side: a ConfigMap or Secret it uses changed')));
});

test('nothing is read or written for a container that has ended', async () => {
  const both = [container('a', key('site', 'one')), container('once', key('site', 'one'))];
  const plain = pod(both, { restartPolicy: 'OnFailure' }, {});
  const { house, sync } = await story([map('site', { one: '1' })], plain);
  house.runtime.exit(house.id('once'), 0);
  await house.settle(plain);
  const runs = house.id('a');
  await sync(pod(both, { restartPolicy: 'OnFailure' }));
  assert.deepEqual([...house.runStore.entries.keys()], [`config-seen/${runs}`]);
});

test('volumes count by what of them is mounted', async () => {
  const volumes = [
    { name: 'all', configMap: { name: 'site' } },
    { name: 'item', secret: { secretName: 'db', items: [{ key: 'pw', path: 'p' }] } },
  ];
  const mount = (name: string, o: object = {}) => ({ volumeMounts: [{ name, mountPath: '/v', ...o }] });
  const desired = pod([container('a', mount('all')), container('b', mount('all', { subPath: 'one' })), container('c', mount('item'))], {
    volumes,
  });
  const s = await story([map('site', { one: '1' }), secret({ pw: 'x' })], desired);
  s.put(map('site', { one: '1', two: '2' }));
  assert.deepEqual(await s.sync(desired), ['stopContainer a', 'startContainer a']);
  s.put(map('site', { one: 'new', two: '2' }));
  assert.deepEqual(await s.sync(desired), ['stopContainer a', 'stopContainer b', 'startContainer a', 'startContainer b']);
  s.put(secret({ pw: 'x', other: 'y' }));
  assert.deepEqual(await s.sync(desired), []);
  s.put(secret({ pw: 'z' }));
  assert.deepEqual(await s.sync(desired), ['stopContainer c', 'startContainer c']);
});

test('a full card and a full runDir are no failure of the pod', async () => {
  const desired = pod([container('a', key('site', 'one'))]);
  const house = new House();
  const full = async (): Promise<void> => {
    throw new Error('no space left on device');
  };
  house.store.put = full;
  house.runStore.put = full;
  house.objects.set('ConfigMap/default/site', map('site', { one: '1' }));
  await house.settle(desired);
  house.objects.set('ConfigMap/default/site', map('site', { one: '2' }));
  house.deeds();
  await house.sync(desired);
  assert.deepEqual(stopsAndStarts(house), ['stopContainer a', 'startContainer a']);
});
