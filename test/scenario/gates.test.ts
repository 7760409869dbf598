/** Field cases G11 and L4: pods that wait for a disk, for another pod, for the time: the whole agent. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manifest, World } from './world.ts';

const waits = (name: string, waitFor: string, timeout?: string): string => {
  const all = [`podsched.dev/wait-for: "${waitFor}"`, ...(timeout === undefined ? [] : [`podsched.dev/wait-timeout: ${timeout}`])];
  return manifest(name).replace(`  name: ${name}\n`, `  name: ${name}\n  annotations:\n${all.map((a) => `    ${a}\n`).join('')}`);
};
const now = (w: World, name: string): string => `${w.sync(name)?.phase} ${w.sync(name)?.reason}: ${w.sync(name)?.message}`;
const count = (w: World, reason: string): number => w.events.filter((e) => e.reason === reason).length;

async function started(files: Readonly<Record<string, string>>): Promise<World> {
  const w = new World();
  for (const [name, text] of Object.entries(files)) w.folder.write(`${name}.yaml`, text);
  await w.start();
  await w.advance(5);
  return w;
}

test('G11: a disk that comes after two minutes: the pod waits without a sandbox, and starts within seconds', async () => {
  const w = await started({ store: waits('store', 'mount:/mnt/ssd') });
  await w.advance(120);
  assert.equal(now(w, 'store'), 'Waiting WaitingForMount: /mnt/ssd is not a mount point');
  assert.equal(w.pod('store')?.status.phase, 'Pending');
  assert.deepEqual(
    [w.runtime.sandboxes.size, w.volumes.asked.filter((a) => a.startsWith('set up')).length, count(w, 'WaitingForMount')],
    [0, 0, 1],
  );
  w.gates.mounted.add('/mnt/ssd');
  await w.advance(6);
  assert.equal(w.sync('store')?.reason, 'Ready');
});

test('G11: unplugged while it runs nothing is stopped, agent restart or not; after a reboot it waits for its disk again', async () => {
  const w = await started({ store: waits('store', 'mount:/mnt/ssd') });
  w.gates.mounted.add('/mnt/ssd');
  await w.advance(10);
  w.gates.mounted.clear();
  await w.advance(120);
  await w.restart();
  await w.advance(120);
  assert.equal(w.sync('store')?.reason, 'Ready');
  await w.reboot();
  await w.advance(30);
  assert.equal(w.sync('store')?.reason, 'WaitingForMount');
  assert.equal(w.runtime.running().length, 0);
  w.gates.mounted.add('/mnt/ssd');
  await w.advance(6);
  assert.equal(w.sync('store')?.reason, 'Ready');
});

test('L4: B starts at the moment A is ready; A’s later restart touches B in nothing', async () => {
  const w = await started({ b: waits('b', 'pod/default/a=Ready') });
  assert.equal(now(w, 'b'), 'Waiting WaitingForPod: pod default/a does not exist');
  w.folder.write('a.yaml', manifest('a'));
  await w.advance(3);
  assert.equal(w.sync('b')?.reason, 'Ready');
  const uid = w.pod('b')?.metadata.uid;
  w.folder.remove('a.yaml');
  await w.advance(60);
  assert.deepEqual([w.sync('b')?.reason, w.pod('b')?.metadata.uid, w.pod('a')], ['Ready', uid, undefined]);
});

test('L4: a cycle is refused a start with its way, and cut by an edit all start', async () => {
  const w = await started({ a: waits('a', 'pod/default/b=Ready'), b: waits('b', 'pod/default/a=Ready', '10s') });
  await w.advance(120);
  assert.equal(now(w, 'a'), 'Waiting WaitCycle: default/a waits for default/b waits for default/a: none of them can ever start');
  assert.equal(w.sync('b')?.reason, 'WaitCycle');
  assert.equal(w.runtime.sandboxes.size, 0);
  w.folder.write('b.yaml', manifest('b'));
  await w.advance(30);
  assert.deepEqual([w.sync('a')?.reason, w.sync('b')?.reason], ['Ready', 'Ready']);
});

test('the time-out counts over agent restarts, and the start after it is told', async () => {
  const w = await started({ web: waits('web', 'time-sync, network', '60s') });
  await w.advance(40);
  assert.equal(w.sync('web')?.reason, 'WaitingForTimeSync');
  await w.restart();
  await w.advance(10);
  assert.equal(w.sync('web')?.reason, 'WaitingForTimeSync');
  w.gates.synced = true;
  await w.advance(6);
  assert.equal(w.sync('web')?.reason, 'Ready', 'a minute after it was first held');
  assert.equal(count(w, 'WaitTimeout'), 1);
});

test('an edit of the list acts at once on a pod that waits, and not at all on one that runs', async () => {
  const w = await started({ web: waits('web', 'mount:/mnt/ssd') });
  const uid = w.pod('web')?.metadata.uid;
  w.folder.write('web.yaml', manifest('web'));
  await w.advance(5);
  assert.deepEqual([w.sync('web')?.reason, w.pod('web')?.metadata.uid], ['Ready', uid]);
  w.folder.write('web.yaml', waits('web', 'mount:/mnt/ssd'));
  await w.advance(60);
  assert.deepEqual([w.sync('web')?.reason, w.pod('web')?.metadata.uid], ['Ready', uid]);
});

test('a removed pod that waited is gone at once, and nothing was made of it', async () => {
  const w = await started({ web: waits('web', 'mount:/mnt/ssd') });
  w.folder.remove('web.yaml');
  await w.advance(10);
  assert.deepEqual([w.pod('web'), w.runtime.sandboxes.size], [undefined, 0]);
});
