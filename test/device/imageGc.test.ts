/** Image GC on a real containerd whose images lie on a small disk of their own: what goes in which order, what survives, and that pods still start. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { V1Event } from '../../src/api/status.ts';
import { CriRuntime } from '../../src/cri/runtime.ts';
import { diskUse } from '../../src/images/diskUse.ts';
import { ImageGc, type ImageGcSettings } from '../../src/images/gc.ts';
import { usedPercent } from '../../src/images/gcPlan.ts';
import { systemClock } from '../../src/world/clock.ts';
import { silentLog } from '../../src/world/log.ts';
import { containerConfig, sandboxConfig } from '../fakes/runtimeConfigs.ts';
import { startAgent } from './agent.ts';
import { type Bed, startBed } from './bed.ts';
import { bedPaths } from './containerd.ts';
import { layeredArchive } from './layeredImage.ts';
import { container, exit, manifest, pod } from './manifest.ts';
import { mustRun, sleep, until } from './process.ts';
import { podsOf } from './story.ts';

/** 15 % of it are more than one image and less than two. */
const diskMb = 176;

interface SmallBed {
  readonly bed: Bed;
  /** The plain file beside the images grows or shrinks until the disk is so full. */
  fill(percent: number): Promise<void>;
  percent(): Promise<number>;
  /** Names of what the runtime has, but the bed's own. */
  images(): Promise<string[]>;
  stop(): Promise<void>;
}

/** A bed with images of about 16 MB each, of which none shares its large layer with another. */
async function smallBed(...names: readonly string[]): Promise<SmallBed> {
  const bed = await startBed({ name: 'gc', started: false });
  const { root } = bedPaths(bed.dir);
  const work = mkdtempSync(join(tmpdir(), 'podsched-gc-'));
  try {
    await mustRun('mount', ['-t', 'tmpfs', '-o', `size=${diskMb}m`, 'tmpfs', root]);
    await bed.startContainerd();
    for (const name of names) {
      const archive = join(work, 'image.tar');
      await layeredArchive(archive, `localhost/${name}:1`, randomBytes(3 << 20).toString('hex'));
      await bed.ctr('images', 'import', archive);
    }
  } catch (e) {
    await bed.stop().catch(() => {});
    throw e;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  const filler = join(root, 'filler');
  return {
    bed,
    percent: async () => usedPercent(await diskUse(root)),
    fill: async (percent) => {
      rmSync(filler, { force: true });
      const { blocks, bfree, bsize } = statfsSync(root);
      const bytes = Math.ceil((blocks * bsize * percent) / 100) - (blocks - bfree) * bsize;
      assert.ok(bytes > 0, `the images alone fill ${percent} % of the disk`);
      await mustRun('fallocate', ['-l', String(bytes), filler]);
    },
    images: async () =>
      (await bed.ctr('images', 'ls', '-q'))
        .split('\n')
        .filter((name) => name.startsWith('localhost/') && !/\/(pause|busybox):/.test(name))
        .map((name) => name.slice('localhost/'.length))
        .sort(),
    stop: () => bed.stop(),
  };
}

test('from 95 % down to 80 %: used, pinned and sandbox images survive, the others go in order; 100 removes nothing', async () => {
  const small = await smallBed('apple', 'berry', 'cherry', 'named', 'imported', 'dead');
  const { bed } = small;
  const runtime = new CriRuntime({ endpoint: bed.endpoint, log: silentLog });
  const events: string[] = [];
  let settings: ImageGcSettings = { highPercent: 100, lowPercent: 80, minimumAgeMs: 0 };
  let cherry: readonly string[] = ['localhost/cherry:1'];
  const gc = new ImageGc({
    clock: systemClock,
    log: silentLog,
    images: runtime.images,
    // cherry is used at the first looks, and then not any more
    containers: async () => {
      const [one] = await runtime.listContainers();
      assert.ok(one);
      return [one, ...(await runtime.listContainers()), ...cherry.map((image) => ({ ...one, image, imageRef: image }))];
    },
    sandboxImage: () => runtime.sandboxImage(),
    knownImages: () => ['localhost/named:1', 'localhost/busybox:1', 'localhost/busybox:2'],
    imported: () => ['localhost/imported:1'],
    diskUse,
    settled: () => true,
    offline: () => false,
    settings: () => settings,
    event: (type, reason, message) => events.push(`${type} ${reason}: ${message}`),
    conditionChanged: () => {},
  });
  try {
    const all = ['apple:1', 'berry:1', 'cherry:1', 'dead:1', 'imported:1', 'named:1'];
    await until('the images are here', 60_000, async () => (await runtime.images.imageStatus('localhost/dead:1')) !== undefined);
    // a container that has ended, of a sandbox that has ended
    const config = sandboxConfig('ended', { logDirectory: `${bed.dir}/logs` });
    const sandbox = await runtime.runSandbox(config, '');
    const id = await runtime.createContainer(
      sandbox,
      containerConfig(config, 'main', { image: 'localhost/dead:1', command: ['true'] }),
      config,
    );
    await runtime.startContainer(id);
    await until('it has ended', 45_000, async () => (await runtime.containerStatus(id)).state === 'exited');
    await runtime.stopSandbox(sandbox);

    const listed = await gc.list();
    const of = (name: string) => listed.find((i) => i.tags.includes(`localhost/${name}:1`));
    assert.deepEqual([of('dead')?.usedBy.length, of('apple')?.usedBy.length], [1, 0]);
    assert.deepEqual(
      ['named', 'imported', 'pause', 'apple'].map((name) => of(name)?.pins.filter((pin) => pin !== 'runtime')),
      [['pod'], ['imported'], ['sandbox'], []],
    );
    assert.ok((of('apple')?.sizeBytes ?? 0) > 6 << 20);

    await small.fill(95);
    cherry = [];
    await gc.collect();
    assert.deepEqual(await small.images(), all, '100 removes nothing');
    assert.match(gc.condition()?.message ?? '', /9[56] % full; no image goes by itself/);

    settings = { ...settings, highPercent: 85 };
    await small.fill(76);
    await gc.collect();
    assert.deepEqual(await small.images(), all, 'below the threshold nothing goes');
    assert.match(gc.condition()?.message ?? '', /at 85 % images go, in this order: localhost\/apple:1/);

    await small.fill(95);
    await gc.collect();
    assert.deepEqual(await small.images(), ['cherry:1', 'dead:1', 'imported:1', 'named:1'], 'cherry was used last');
    assert.ok((await small.percent()) <= 80, `${await small.percent()} %`);
    const removed = events.filter((e) => e.includes('ImageRemoved')).map((e) => /localhost\/\w+/.exec(e)?.[0]);
    assert.deepEqual(removed, ['localhost/apple', 'localhost/berry'], 'in order');

    // more than all images together: what may go goes, and that it is not enough is told
    await small.fill(99);
    await gc.collect();
    assert.deepEqual(await small.images(), ['dead:1', 'imported:1', 'named:1']);
    assert.match(events.at(-1) ?? '', /FreeDiskSpaceFailed/);

    await runtime.removeContainer(id);
    await runtime.removeSandbox(sandbox);
    cherry = ['localhost/named:1'];
  } finally {
    runtime.close();
    await small.stop();
  }
});

test('F3: a full disk takes no image that a pod names: removed and added again, the pod starts; prune and the lists say what is', async () => {
  const small = await smallBed('apple', 'berry', 'named', 'crashing');
  // a pod would not be let in while the disk is short: this is about images alone
  const evictionHard = { 'imagefs.available': '0%', 'imagefs.inodesFree': '0%', 'nodefs.available': '0%' };
  const agent = await startAgent(small.bed, { config: { imageMinimumGCAge: '3s', evictionHard }, started: false });
  const phase = async (name: string) => (await podsOf(agent)).find((p) => p.metadata.name === name)?.status.phase;
  const named = manifest(pod('named', { containers: [container('main', undefined, { image: 'localhost/named:1' })] }));
  try {
    agent.drop('named.yaml', named);
    agent.drop('crashing.yaml', manifest(pod('crashing', { containers: [container('main', exit(1), { image: 'localhost/crashing:1' })] })));
    await small.fill(95);
    agent.start();
    await until('the pod runs', 60_000, async () => (await phase('named').catch(() => undefined)) === 'Running');
    const conditions = async () => JSON.parse((await agent.get('/conditions')).body).items as { type: string; message: string }[];
    await until('the node says it', 60_000, async () => (await conditions()).some((c) => c.type === 'ImageDiskFilling'));
    // older than the minimum age; a change brings housekeeping sooner
    await sleep(4000);
    agent.drop('poke.yaml', manifest(pod('poke')));
    await until('images went', 90_000, async () => !(await small.images()).includes('berry:1'));
    await until('the disk has room', 30_000, async () => (await small.percent()) <= 80);
    assert.deepEqual(await small.images(), ['crashing:1', 'named:1']);
    const events = JSON.parse((await agent.get('/events')).body).items as V1Event[];
    const gone = events
      .filter((e) => e.reason === 'ImageRemoved')
      .map((e) => `${e.involvedObject.kind} ${/localhost\/\w+/.exec(e.message)?.[0]}`);
    assert.deepEqual(gone, ['Node localhost/apple', 'Node localhost/berry']);

    await small.fill(95);
    agent.removeManifest('named.yaml');
    await until('it is gone', 60_000, async () => (await phase('named')) === undefined);
    agent.drop('named.yaml', named);
    await until('it runs again', 60_000, async () => (await phase('named')) === 'Running');

    const list = await agent.cli('images', 'list');
    assert.match(list.stdout, /^NAME .*IMAGE ID .*SIZE .*USED BY .*PINNED\n/);
    assert.match(list.stdout, /^localhost\/named:1 .*MB +default\/named +pod$/m);
    assert.match(list.stdout, /^localhost\/pause:1 .*sandbox/m);
    agent.removeManifest('named.yaml');
    await until('it is gone', 60_000, async () => (await phase('named')) === undefined);
    await until('its containers are gone', 60_000, async () =>
      /localhost\/named:1 /.test((await agent.cli('images', 'prune', '--dry-run')).stdout),
    );
    assert.deepEqual(await small.images(), ['crashing:1', 'named:1'], 'a dry run only tells');
    const pruned = await agent.cli('images', 'prune');
    assert.match(pruned.stdout, /^removed localhost\/named:1 \([\d.]+MB\)$/m);
    assert.match(pruned.stdout, /\nFreed [\d.]+MB\.\n$/);
    assert.deepEqual(await small.images(), ['crashing:1']);
    assert.equal(await phase('poke'), 'Running');
  } finally {
    await agent.remove();
    await small.stop();
  }
});
