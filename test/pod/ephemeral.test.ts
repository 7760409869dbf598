import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import type { EphemeralContainer } from '../../src/api/v1.ts';
import { EphemeralContainers, withEphemeral } from '../../src/pod/ephemeral.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { desiredPod } from './desiredPod.ts';

const one = 'uid-1' as PodUid;
const two = 'uid-2' as PodUid;
const debugger_ = (name: string): EphemeralContainer => ({ name, image: 'busybox' });

test('what was added is known after a restart, in its order, under its pod alone', async () => {
  const store = new MemoryStore();
  const before = new EphemeralContainers({ log: silentLog, store });
  await Promise.all([before.add(one, debugger_('b')), before.add(one, debugger_('a')), before.add(two, debugger_('c'))]);
  const now = new EphemeralContainers({ log: silentLog, store });
  await now.load();
  assert.deepEqual(now.of(one), [debugger_('b'), debugger_('a')]);
  assert.deepEqual(now.of(two), [debugger_('c')]);
  assert.deepEqual(now.of('uid-3' as PodUid), []);
});

test('it is on the card before it is known; what cannot be stored is not kept', async () => {
  const store = new MemoryStore();
  let stored = (): void => {};
  const slow = Object.assign(Object.create(store), {
    put: async (key: string, value: unknown) => {
      await new Promise<void>((resolve) => {
        stored = resolve;
      });
      await store.put(key, value);
    },
  });
  const containers = new EphemeralContainers({ log: silentLog, store: slow });
  const added = containers.add(one, debugger_('a'));
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(containers.of(one), []);
  stored();
  await added;
  assert.deepEqual(containers.of(one), [debugger_('a')]);

  slow.put = async () => Promise.reject(new Error('ENOSPC'));
  await assert.rejects(containers.add(one, debugger_('b')), /ENOSPC/);
  assert.deepEqual(containers.of(one), [debugger_('a')]);
  slow.put = (key: string, value: unknown) => store.put(key, value);
  await containers.add(one, debugger_('c'));
  await assert.rejects(containers.add(one, debugger_('c')), /already/);
  assert.deepEqual(await store.get('ephemeral/uid-1'), [debugger_('a'), debugger_('c')]);
});

test('they go with the instance, also one added a moment before, and never with another', async () => {
  const store = new MemoryStore();
  const containers = new EphemeralContainers({ log: silentLog, store });
  await containers.add(two, debugger_('c'));
  await Promise.all([containers.add(one, debugger_('a')), containers.forget(one)]);
  assert.deepEqual([containers.of(one), await store.list('')], [[], ['ephemeral/uid-2']]);
  await containers.add(one, debugger_('a'));
  await containers.retain((uid) => uid === one);
  assert.deepEqual(await store.list(''), ['ephemeral/uid-1']);
  await containers.forget(two);
});

test('entries that cannot be read or have an unknown shape are left out, the others are not', async () => {
  const store = new MemoryStore();
  store.entries.set('ephemeral/uid-1', '{"cut');
  store.entries.set('ephemeral/uid-2', JSON.stringify([debugger_('c')]));
  store.entries.set('ephemeral/uid-3', JSON.stringify({ name: 'x' }));
  const containers = new EphemeralContainers({ log: silentLog, store });
  await containers.load();
  assert.deepEqual([containers.of(one), containers.of(two), containers.of('uid-3' as PodUid)], [[], [debugger_('c')], []]);
});

test('a pod gets what was added and keeps its hashes; the same pod comes back as the same object', async () => {
  const pod = desiredPod('web', 'uid-web');
  const containers = new EphemeralContainers({ log: silentLog, store: new MemoryStore() });
  assert.equal(containers.applied(pod), pod);
  await containers.add(pod.uid, debugger_('a'));
  const applied = containers.applied(pod);
  assert.deepEqual(applied, { ...pod, pod: { ...pod.pod, spec: { ...pod.pod.spec, ephemeralContainers: [debugger_('a')] } } });
  assert.equal(containers.applied(pod), applied);
  assert.equal(containers.applied(applied), applied);
  await containers.add(pod.uid, debugger_('b'));
  assert.deepEqual(containers.applied(applied).pod.spec.ephemeralContainers, [debugger_('a'), debugger_('b')]);
  assert.deepEqual(withEphemeral(applied, []), pod);
});
