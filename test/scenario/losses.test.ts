/** What the stores lose or refuse costs no pod: a full or unreadable card, a full run directory, a lost checkpoint. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RuntimeError } from '../../src/container/runtime.ts';
import type { PodRef } from '../../src/kuberuntime/names.ts';
import { manifest, noLogs, World } from './world.ts';

const full = async (): Promise<never> => {
  throw new Error('ENOSPC: no space left on device');
};

async function running(name: string, text = manifest(name)): Promise<World> {
  const world = new World();
  world.folder.files.set(`${name}.yaml`, text);
  await world.start();
  await world.advance(3);
  assert.equal(world.pod(name)?.status.phase, 'Running');
  return world;
}

const stops = (world: World) => world.runtime.deeds.filter((d) => d.startsWith('stop'));

test('with a full run directory a one-shot pod ends all the same, and a crash loop keeps its pace', async () => {
  const world = new World();
  world.runtime.onStart((name) => ({ exitAfterMs: 1000, exitCode: name === 'once' ? 0 : 1 }));
  const once = ['{name: once, image: localhost/busybox:1}'];
  world.folder.files.set('job.yaml', manifest('job', { lines: ['restartPolicy: OnFailure'], containers: once }));
  world.folder.files.set('web.yaml', manifest('web'));
  world.runStore.put = full;
  await world.start();
  await world.advance(100);
  assert.equal(world.pod('job')?.status.phase, 'Succeeded');
  assert.equal(world.sync('job')?.phase, 'Completed');
  const jobs = [...world.runtime.sandboxes.values()].filter((s) => s.config.name === 'job');
  assert.deepEqual(
    jobs.map((s) => s.state),
    ['notready'],
  );
  const web = world.runtime.calls.filter((c) => c.method === 'createContainer' && (c.args[1] as { name: string }).name === 'app');
  const gaps = web.slice(1).map((c, i) => Math.round((c.at - (web[i]?.at ?? 0)) / 1000));
  assert.deepEqual(gaps, [1, 11, 21, 41]);
});

test('a card that cannot be listed does not keep the agent from starting', async () => {
  const world = new World();
  world.folder.files.set('web.yaml', manifest('web'));
  world.stateStore.list = full;
  await world.start();
  await world.advance(30);
  assert.equal(world.pod('web')?.status.phase, 'Running');
});

test('with a full card the end of a one-shot pod is told, nothing of it goes, and it is recorded when there is room', async () => {
  const world = new World();
  world.runtime.onStart(() => ({ exitAfterMs: 1000, exitCode: 0 }));
  world.folder.files.set('job.yaml', manifest('job', { lines: ['restartPolicy: Never'] }));
  await world.start();
  await world.clock.advance(500);
  const put = world.stateStore.put;
  world.stateStore.put = full;
  await world.advance(120);
  assert.equal(world.pod('job')?.status.phase, 'Succeeded');
  assert.ok(world.events.some((e) => e.reason === 'StoreFailed'));
  assert.notEqual(world.runtime.find('job', 'app'), undefined);
  world.stateStore.put = put;
  await world.advance(30);
  assert.equal(world.sync('job')?.phase, 'Completed');
  world.runtime.containers.clear();
  world.runtime.sandboxes.clear();
  await world.restart();
  await world.advance(60);
  assert.equal(world.runtime.deeds.filter((d) => d === 'startContainer').length, 1);
});

test('with the state lost and the card full, what a file names runs on untouched, and is adopted when there is room', async () => {
  const world = await running('web');
  const uid = world.pod('web')?.metadata.uid;
  world.kill();
  world.stateStore.entries.clear();
  const put = world.stateStore.put;
  world.stateStore.put = full;
  await world.start();
  await world.advance(120);
  assert.deepEqual(world.runtime.running(), ['web/app']);
  assert.equal(world.sync('web')?.reason, 'StoreFailed');
  world.stateStore.put = put;
  await world.advance(60);
  assert.deepEqual(stops(world), []);
  assert.equal(world.pod('web')?.metadata.uid, uid);
  assert.equal(world.pod('web')?.status.containerStatuses?.[0]?.restartCount, 0);
});

test('with a lost checkpoint a pod whose file is mended later is adopted, not started anew', async () => {
  const world = await running('web');
  const uid = world.pod('web')?.metadata.uid;
  const good = world.folder.files.get('web.yaml') ?? '';
  world.kill();
  for (const key of world.stateStore.entries.keys()) if (key.startsWith('objects/')) world.stateStore.entries.set(key, '{torn');
  world.folder.files.set('web.yaml', 'kind: [Pod\n  oops');
  await world.start();
  await world.advance(60);
  assert.deepEqual(world.runtime.running(), ['web/app']);
  world.folder.write('web.yaml', good);
  await world.advance(60);
  assert.deepEqual(stops(world), []);
  assert.equal(world.pod('web')?.metadata.uid, uid);
});

test('a pod that comes while garbage is collected keeps its logs', async () => {
  const folders = new Map<string, PodRef>();
  const world: World = new World({
    logs: {
      ...noLogs,
      ensure: async (pod) => {
        folders.set(pod.uid, pod);
      },
      removePod: async (pod) => {
        folders.delete(pod.uid);
      },
      list: async () => {
        await world.clock.sleep(5000);
        return [...folders.values()];
      },
    },
  });
  world.folder.files.set('web.yaml', manifest('web'));
  await world.start();
  await world.advance(3);
  world.folder.write('new.yaml', manifest('new'));
  await world.advance(20);
  assert.deepEqual([...folders.values()].map((p) => p.name).sort(), ['new', 'web']);
  world.folder.remove('web.yaml');
  await world.advance(60);
  assert.deepEqual(
    [...folders.values()].map((p) => p.name),
    ['new'],
  );
});

test('with the checkpoint lost and the pod edited meanwhile in what needs a new sandbox, it gets one: the old one ends first', async () => {
  const world = await running('web');
  const uid = world.pod('web')?.metadata.uid;
  world.kill();
  world.stateStore.entries.clear();
  world.folder.files.set('web.yaml', manifest('web', { lines: ['hostname: other'] }));
  await world.start();
  await world.advance(90);
  assert.deepEqual(world.runtime.running(), ['web/app']);
  const [sandbox] = [...world.runtime.sandboxes.values()].filter((s) => s.state === 'ready');
  assert.equal(sandbox?.config.hostname, 'other');
  assert.notEqual(world.pod('web')?.metadata.uid, uid);
  assert.equal(world.pod('web')?.status.phase, 'Running');
  assert.deepEqual(world.runtime.violations, []);
});

test('with the checkpoint lost, a one-shot pod that had ended and was edited in its volumes runs the wanted work', async () => {
  const world = new World();
  world.runtime.onStart(() => ({ exitAfterMs: 1000, exitCode: 0 }));
  world.folder.files.set('job.yaml', manifest('job', { lines: ['restartPolicy: Never'] }));
  await world.start();
  await world.advance(0.5);
  world.kill();
  await world.advance(2);
  world.stateStore.entries.clear();
  world.folder.files.set('job.yaml', manifest('job', { lines: ['restartPolicy: Never', 'hostname: other'] }));
  await world.start();
  await world.advance(30);
  assert.equal(world.sync('job')?.phase, 'Completed');
  assert.equal(world.runtime.deeds.filter((d) => d === 'startContainer').length, 2);
});

for (const method of ['removeContainer', 'removeSandbox'] as const) {
  test(`what the runtime refuses to remove (${method}) is removed when it is asked again, seconds later, with nothing else happening`, async () => {
    const world = await running('web');
    await world.advance(30);
    world.runtime.failNext(method, new RuntimeError('unknown', 'container is already in removing state'), 2);
    world.folder.files.delete('web.yaml');
    await world.advance(45);
    assert.deepEqual([...world.runtime.containers.keys(), ...world.runtime.sandboxes.keys()], []);
  });
}

test('a container that the runtime finishes making for an agent that was killed, after the next one has listed everything, goes too', async () => {
  const world = await running('web');
  const [made] = world.runtime.containers.values();
  assert.ok(made);
  world.folder.files.delete('web.yaml');
  await world.restart();
  await world.advance(8);
  assert.deepEqual([...world.runtime.containers.keys()], [], 'the orphan was ended and removed');
  // no event tells of it, and its sandbox is gone
  world.runtime.containers.set('late' as typeof made.id, { ...made, id: 'late' as typeof made.id, state: 'created' });
  await world.advance(30);
  assert.deepEqual([...world.runtime.containers.keys()], []);
});
