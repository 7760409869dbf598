/** Stories of a node that runs short, on the whole agent in virtual time: who goes, what is told, and that it comes back (G9, C10, C11, H3, 22). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultEvictionHard } from '../../src/api/evictionThresholds.ts';
import type { EvictionWorld } from '../../src/kubeletEviction.ts';
import { manifest, World, type WorldOptions } from './world.ts';

const MiB = 2 ** 20;
const GiB = 2 ** 30;
/** A pressure is told for so long after it was last seen. */
const transitionMs = 300_000;

/** A Pi with 1 GB and a card of 10 GB; what pods use of it is by their names, while they run. */
class Pi {
  readonly memory = new Map<string, number>();
  /** Stays until the pod's folder is torn down. */
  readonly disk = new Map<string, number>();
  readonly world: World;

  constructor() {
    const eviction: EvictionWorld = {
      thresholds: defaultEvictionHard(),
      pressureTransitionMs: transitionMs,
      memory: () => ({
        totalBytes: 1000 * MiB,
        availableBytes: Math.max(0, 800 * MiB - this.#running().reduce((sum, name) => sum + (this.memory.get(name) ?? 0), 0)),
        swapFreeBytes: 0,
        anonBytes: 0,
        zram: false,
      }),
      processes: () => ({ most: 1000, running: 100 }),
      filesystem: async () => ({ device: 1, capacityBytes: 10 * GiB, availableBytes: 10 * GiB - this.written(), inodes: 0, inodesFree: 0 }),
      folderUsage: async (folder) => {
        const uid = /\/pods\/([^/]+)\//.exec(folder)?.[1];
        const name = this.world.toldPods().find((p) => p.metadata.uid === uid)?.metadata.name ?? '';
        return { bytes: this.disk.get(name) ?? 0, inodes: 1 };
      },
      podsDir: '/var/lib/podsched/pods',
    };
    const options: WorldOptions & { readonly eviction: EvictionWorld } = { eviction };
    this.world = new World(options);
    this.world.runtime.onStart(() => ({ ignoresTerm: false }));
    const { volumes } = this.world;
    const tearDown = volumes.tearDown.bind(volumes);
    volumes.tearDown = async (uid) => {
      await tearDown(uid);
      const name = this.world.toldPods().find((p) => p.metadata.uid === uid)?.metadata.name;
      if (name !== undefined) this.disk.delete(name);
    };
  }

  written(): number {
    return [...this.disk.values()].reduce((sum, bytes) => sum + bytes, 4 * GiB);
  }

  /** What containers use is told by the runtime as well. */
  use(name: string, mi: number): void {
    this.memory.set(name, mi * MiB);
    for (const c of this.world.runtime.containers.values()) {
      const pod = c.config.labels['io.kubernetes.pod.name'];
      if (pod === name) this.world.runtime.usage.set(c.id, { memory: { atMs: 0, workingSetBytes: mi * MiB } });
    }
  }

  #running(): string[] {
    return this.world.runtime.running().map((r) => r.split('/')[0] ?? r);
  }
}

async function pi(pods: Readonly<Record<string, string>>): Promise<Pi> {
  const p = new Pi();
  for (const [name, text] of Object.entries(pods)) p.world.folder.files.set(`${name}.yaml`, text);
  await p.world.start();
  await p.world.advance(12);
  return p;
}

const status = (p: Pi, name: string) => p.world.pod(name)?.status;
const uidOf = (p: Pi, name: string) => p.world.pod(name)?.metadata.uid;
const eventsOf = (p: Pi, reason: string) => p.world.events.filter((e) => e.reason === reason).map((e) => e.involvedObject.name);
const never = manifest('leak', { lines: ['restartPolicy: Never'] });

test('a leak is evicted once, told as the kubelet tells it, and comes back as a new instance when the pressure is over', async () => {
  const p = await pi({ leak: manifest('leak'), idle: manifest('idle') });
  const [leak, idle] = [uidOf(p, 'leak'), uidOf(p, 'idle')];
  p.use('idle', 20);
  p.use('leak', 750);
  await p.world.advance(20);
  assert.deepEqual(p.world.runtime.running(), ['idle/app']);
  const told = status(p, 'leak');
  assert.deepEqual([told?.phase, told?.reason], ['Failed', 'Evicted']);
  assert.match(
    told?.message ?? '',
    /^The node was low on resource: memory\. Threshold quantity: 80Mi, available: 30Mi\. Container app was using 750Mi, request is 0, has larger consumption of memory\. $/,
  );
  const target = told?.conditions?.find((c) => c.type === 'DisruptionTarget');
  assert.deepEqual([target?.status, target?.reason], ['True', 'TerminationByKubelet']);
  assert.equal(told?.containerStatuses?.[0]?.state.terminated !== undefined, true);
  assert.deepEqual([p.world.sync('leak')?.phase, p.world.sync('leak')?.reason], ['Failed', 'Evicted']);
  p.use('leak', 20);
  await p.world.advance(250);
  assert.equal(uidOf(p, 'leak'), leak, 'the pressure stands');
  await p.world.advance(80);
  assert.deepEqual(p.world.runtime.running().sort(), ['idle/app', 'leak/app']);
  assert.notEqual(uidOf(p, 'leak'), leak);
  assert.equal(uidOf(p, 'idle'), idle);
  assert.deepEqual([status(p, 'leak')?.phase, status(p, 'leak')?.reason], ['Running', undefined]);
  assert.deepEqual([eventsOf(p, 'Evicted'), eventsOf(p, 'EvictionThresholdMet')], [['leak'], ['pi']]);
  assert.deepEqual(p.world.runtime.violations, []);
});

test('Always means always: evicted again and again, it comes back each time, later each time', async () => {
  const p = await pi({ leak: manifest('leak') });
  const instances = new Set<string | undefined>();
  for (let i = 0; i < 4; i++) {
    instances.add(uidOf(p, 'leak'));
    p.use('leak', 780);
    await p.world.advance(15);
    assert.equal(status(p, 'leak')?.reason, 'Evicted');
    p.use('leak', 10);
    await p.world.advance(500);
    assert.equal(status(p, 'leak')?.phase, 'Running', `after eviction ${i + 1}`);
  }
  assert.equal(instances.size, 4);
  assert.equal(p.world.runtime.sandboxes.size, 1, 'nothing of former instances is left');
});

test('an evicted Never pod has run: it stays as it ended, over agents and reboots', async () => {
  const p = await pi({ leak: never });
  p.use('leak', 790);
  await p.world.advance(15);
  p.use('leak', 10);
  const told = status(p, 'leak');
  assert.deepEqual([told?.phase, told?.reason], ['Failed', 'Evicted']);
  await p.world.advance(700);
  await p.world.restart();
  await p.world.advance(400);
  assert.deepEqual([status(p, 'leak')?.phase, status(p, 'leak')?.reason], ['Failed', 'Evicted']);
  await p.world.reboot();
  await p.world.advance(400);
  assert.deepEqual([status(p, 'leak')?.phase, status(p, 'leak')?.reason, status(p, 'leak')?.message], ['Failed', 'Evicted', told?.message]);
  assert.equal(p.world.runtime.deeds.filter((d) => d === 'startContainer').length, 1);
});

test('an evicted OnFailure pod is no completion: it comes back', async () => {
  const p = await pi({ leak: manifest('leak', { lines: ['restartPolicy: OnFailure'] }) });
  p.use('leak', 790);
  await p.world.advance(15);
  p.use('leak', 10);
  await p.world.advance(400);
  assert.equal(status(p, 'leak')?.phase, 'Running');
});

for (const [when, ms] of [
  ['in its first moment', 0],
  ['while its container is being stopped', 1_500],
  ['when it is over', 5_000],
] as const) {
  test(`the agent is killed amid an eviction, ${when}: the next one ends it, tells the same, and brings it back`, async () => {
    const p = await pi({ leak: manifest('leak') });
    p.world.runtime.onStart(() => ({ ignoresTerm: true }));
    await p.world.reboot();
    await p.world.advance(12);
    const leak = uidOf(p, 'leak');
    p.use('leak', 790);
    while (!p.world.events.some((e) => e.reason === 'Evicted')) await p.world.advance(0.25);
    await p.world.advance(ms / 1000);
    await p.world.restart();
    await p.world.advance(15);
    assert.deepEqual([status(p, 'leak')?.phase, status(p, 'leak')?.reason, uidOf(p, 'leak')], ['Failed', 'Evicted', leak]);
    assert.deepEqual(p.world.runtime.running(), []);
    p.use('leak', 10);
    await p.world.advance(400);
    assert.equal(status(p, 'leak')?.phase, 'Running');
    assert.notEqual(uidOf(p, 'leak'), leak);
    assert.deepEqual(p.world.runtime.violations, []);
  });
}

test('a reboot amid a pressure starts everything anew', async () => {
  const p = await pi({ leak: manifest('leak') });
  p.use('leak', 790);
  await p.world.advance(15);
  assert.equal(status(p, 'leak')?.reason, 'Evicted');
  p.use('leak', 10);
  await p.world.reboot();
  await p.world.advance(12);
  assert.equal(status(p, 'leak')?.phase, 'Running');
});

test('one pod fills the disk: only that one is evicted, critical and idle ones stay, and it comes back to an empty folder (G9, C11)', async () => {
  const volumes = ['volumes: [{name: data, emptyDir: {}}]'];
  const p = await pi({
    writer: manifest('writer', { lines: volumes }),
    critical: manifest('critical', { lines: [...volumes, 'priorityClassName: system-node-critical'] }),
    idle: manifest('idle', { lines: volumes }),
  });
  p.disk.set('critical', GiB);
  p.disk.set('idle', MiB);
  p.disk.set('writer', 0);
  const before = ['critical', 'idle'].map((name) => uidOf(p, name));
  for (let second = 0; second < 400 && status(p, 'writer')?.reason !== 'Evicted'; second++) {
    p.disk.set('writer', (p.disk.get('writer') ?? 0) + 17 * MiB);
    await p.world.advance(1);
  }
  assert.equal(status(p, 'writer')?.reason, 'Evicted');
  assert.ok(p.written() < 10 * GiB, 'the card was not full');
  await p.world.advance(60);
  assert.equal(p.disk.has('writer'), false);
  assert.equal(p.world.runtime.sandboxes.size, 2, 'what it left in the runtime is gone');
  assert.equal(status(p, 'writer')?.reason, 'Evicted', 'and it is still told');
  await p.world.advance(400);
  assert.equal(status(p, 'writer')?.phase, 'Running');
  assert.deepEqual(
    ['critical', 'idle'].map((name) => uidOf(p, name)),
    before,
  );
  assert.deepEqual(eventsOf(p, 'Evicted'), ['writer']);
});

test('C10: a pod that comes while the disk is full is refused, and starts by itself as a new instance when there has been room for a while', async () => {
  const p = await pi({ idle: manifest('idle') });
  const idle = uidOf(p, 'idle');
  // what a program of the host wrote: no eviction brings it back, so that the pressure stands until somebody makes room
  p.disk.set('the host', 6 * GiB - 100 * MiB);
  await p.world.advance(20);
  p.world.folder.write('late.yaml', manifest('late'));
  await p.world.advance(10);
  const refused = uidOf(p, 'late');
  const asRefused = ['Failed', 'Evicted', 'Pod was rejected: The node had condition: [DiskPressure]. ', refused];
  const late = () => [status(p, 'late')?.phase, status(p, 'late')?.reason, status(p, 'late')?.message, uidOf(p, 'late')];
  assert.deepEqual(late(), asRefused);
  assert.deepEqual([p.world.sync('late')?.phase, p.world.sync('late')?.reason], ['Failed', 'Evicted']);
  await p.world.advance(600);
  assert.deepEqual(late(), asRefused, 'as long as the disk is full');
  p.disk.delete('the host');
  await p.world.advance(transitionMs / 1000 - 20);
  assert.deepEqual(late(), asRefused, 'room of a moment is no room');
  await p.world.advance(80);
  assert.deepEqual([status(p, 'late')?.phase, status(p, 'late')?.reason, p.world.sync('late')?.reason], ['Running', undefined, 'Ready']);
  assert.ok(refused !== undefined && uidOf(p, 'late') !== refused, 'a new instance');
  assert.deepEqual([eventsOf(p, 'Evicted'), uidOf(p, 'idle')], [['late'], idle], 'told once, and who ran goes on');
  assert.deepEqual(p.world.runtime.violations, []);
});

test('an edited pod is a new try at once; a removed one is gone', async () => {
  const p = await pi({ leak: manifest('leak'), other: manifest('other') });
  p.use('leak', 790);
  await p.world.advance(15);
  p.use('leak', 10);
  const anew = (more: string) =>
    manifest('leak', { containers: [`{name: app, image: localhost/busybox:2, command: [sleep, "100"]${more}}`] });
  p.world.folder.write('leak.yaml', anew(''));
  await p.world.advance(10);
  assert.equal(status(p, 'leak')?.message, 'Pod was rejected: The node had condition: [MemoryPressure]. ', 'it asks for no memory');
  p.world.folder.write('leak.yaml', anew(', resources: {requests: {memory: 20Mi}}'));
  await p.world.advance(10);
  assert.equal(status(p, 'leak')?.phase, 'Running');
  p.use('other', 790);
  await p.world.advance(15);
  assert.equal(status(p, 'other')?.reason, 'Evicted');
  p.world.folder.remove('other.yaml');
  await p.world.advance(500);
  assert.equal(p.world.pod('other'), undefined);
});

test('an evicted Never pod whose end does not go onto the full card is recorded when there is room: no reboot runs it twice', async () => {
  const p = await pi({ leak: never });
  const { stateStore } = p.world;
  const put = stateStore.put.bind(stateStore);
  let full = true;
  stateStore.put = async (key, value) => {
    if (full && key.startsWith('completions/')) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    await put(key, value);
  };
  p.use('leak', 790);
  await p.world.advance(15);
  p.use('leak', 10);
  assert.deepEqual([status(p, 'leak')?.reason, eventsOf(p, 'StoreFailed')], ['Evicted', ['leak']]);
  full = false;
  await p.world.advance(130);
  await p.world.reboot();
  await p.world.advance(60);
  assert.deepEqual([status(p, 'leak')?.reason, stateStore.entries.has('completions/Pod/default/leak')], ['Evicted', true]);
  assert.equal(p.world.runtime.deeds.filter((d) => d === 'startContainer').length, 1);
});

test('an evicted Never pod leaves nothing to find when its end is on the card, and not before', async () => {
  const p = await pi({
    leak: manifest('leak', { lines: ['restartPolicy: Never', 'volumes: [{name: data, emptyDir: {sizeLimit: 1Mi}}]'] }),
  });
  const { stateStore, runtime } = p.world;
  const put = stateStore.put.bind(stateStore);
  let slow: () => void = () => {};
  stateStore.put = async (key, value) => {
    if (key.startsWith('completions/')) await new Promise<void>((resolve) => (slow = resolve));
    await put(key, value);
  };
  p.disk.set('leak', 8 * MiB);
  await p.world.advance(80);
  assert.equal(status(p, 'leak')?.reason, 'Evicted');
  assert.equal(runtime.containers.size, 1, 'after a power cut it is all that says that it has run');
  slow();
  await p.world.advance(1);
  assert.equal(runtime.containers.size, 0);
});
