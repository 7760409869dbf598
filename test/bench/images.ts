/** What a thin link and a large image cost a node: an update over it, an archive read in, and a changed ConfigMap. */
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { PodUid } from '../../src/api/objects.ts';
import { beating, gap } from '../device/beats.ts';
import { startImageRegistry } from '../device/imageRegistry.ts';
import { busybox2 } from '../device/images.ts';
import { largeArchive, memoryGrowth } from '../device/largeArchive.ts';
import { container, type Fields, manifest, pod } from '../device/manifest.ts';
import { sleep, until } from '../device/process.ts';
import { type Diary, rootOf, startDiary } from '../device/story.ts';
import { containerConfig, sandboxConfig } from '../fakes/runtimeConfigs.ts';
import { spread } from './measure.ts';
import type { BenchWorld } from './measures.ts';
import { type Row, row } from './report.ts';

export interface ImageSettings {
  /** Updates of one pod, each to an image of `imageBytes` over a link of 2 MB/s. */
  readonly updates: number;
  readonly imageBytes: number;
  readonly archiveMegabytes: number;
  readonly changes: number;
}

const linkBytesPerSecond = 2_000_000;
const graceSeconds = 2; // the least that a kubelet gives
const beats = (version: number): readonly string[] => ['sh', '-c', beating(String(version))];

/** The same container by hand: stopped with its grace, created, started. Milliseconds between the beats of the two. */
async function byHand(world: Pick<BenchWorld, 'bed' | 'runtime'>, times: number): Promise<number[]> {
  const { runtime, bed } = world;
  const diary = startDiary();
  const uid = randomUUID() as PodUid;
  const logDirectory = join(bed.dir, 'raw', `default_raw-update_${uid}`);
  const config = sandboxConfig('raw-update', { uid, logDirectory, cgroupParent: `/kubepods/besteffort/pod${uid}` });
  const sandbox = await runtime.runSandbox(config, '');
  const start = async (version: number) => {
    const mounts = [{ containerPath: '/diary', hostPath: diary.dir, readonly: false }];
    const resources = { cpuShares: 2, oomScoreAdj: 1000 };
    const made = containerConfig(config, 'main', { command: beats(version), attempt: version, mounts, resources });
    const id = await runtime.createContainer(sandbox, made, config);
    await runtime.startContainer(id);
    await diary.of(`beat ${version}`);
    return id;
  };
  try {
    let id = await start(0);
    for (let version = 1; version <= times; version++) {
      await sleep(500);
      // containerd 1.6 fails the call when the container ends just as it is asked
      await runtime.stopContainer(id, graceSeconds).catch(() => runtime.stopContainer(id, graceSeconds));
      id = await start(version);
    }
    return Array.from({ length: times }, (_, i) => gap(diary, String(i), String(i + 1)) * 1000);
  } finally {
    await runtime.stopSandbox(sandbox);
    await runtime.removeSandbox(sandbox);
    diary.end();
  }
}

function beatingPod(diary: Diary, image: string, version: number): string {
  const main = container('main', beats(version), { image, volumeMounts: [diary.mount] });
  return manifest(pod('update', { terminationGracePeriodSeconds: graceSeconds, volumes: [diary.volume], containers: [main] }));
}

/** An image comes over a slow link: how long the pod is down, by its own beats. */
async function updates(world: BenchWorld, settings: ImageSettings): Promise<Row[]> {
  const { agent, watcher } = world;
  const floors = await byHand(world, settings.updates);
  const registry = await startImageRegistry();
  const diary = startDiary();
  try {
    const images: string[] = [];
    for (let i = 1; i <= settings.updates; i++)
      images.push(await registry.push(busybox2, { name: `update:${i}`, extraBytes: settings.imageBytes }));
    registry.setFault({ does: 'slow', bytesPerSecond: linkBytesPerSecond, on: 'blob' });
    agent.drop('update.yaml', beatingPod(diary, 'localhost/busybox:1', 0));
    await diary.of('beat 0', 60_000);
    const whole: number[] = [];
    for (const [i, image] of images.entries()) {
      await sleep(1_000);
      const start = performance.now();
      agent.drop('update.yaml', beatingPod(diary, image, i + 1));
      await diary.of(`beat ${i + 1}`, 120_000);
      whole.push(performance.now() - start);
    }
    const down = images.map((_, i) => gap(diary, String(i), String(i + 1)) * 1000);
    agent.removeManifest('update.yaml');
    await watcher.until(agent.topic('pods/default/update'), (v) => v === undefined, 60_000);
    return [
      row(`image of ${settings.imageBytes / 1e6} MB over 2 MB/s: edited → runs`, spread(whole)),
      row(`… of that, down (grace ${graceSeconds} s)`, spread(down), {
        floor: spread(floors).median,
        budget: { of: 'value', limit: (graceSeconds + 1) * 1000 },
      }),
    ];
  } finally {
    await registry.stop();
    diary.end();
  }
}

/** An archive is dropped into the folder of images of a fresh agent: by how much its memory rises. */
async function archive(world: BenchWorld, settings: ImageSettings): Promise<Row> {
  const { agent, bed, watcher } = world;
  const work = mkdtempSync(join(bed.dir, 'archive-'));
  const folder = join(agent.stateDir, 'images');
  try {
    mkdirSync(folder, { recursive: true });
    await agent.restart();
    await watcher.until(agent.topic('online'), (v) => (v as { state?: string } | undefined)?.state === 'online', 20_000);
    const packed = await largeArchive(work, 'localhost/large:1', settings.archiveMegabytes);
    await sleep(5_000);
    const { grownBytes } = await memoryGrowth(agent.pid, async () => {
      renameSync(packed, join(folder, 'large.tar.gz'));
      const imported = async () => (await agent.get('/events')).body.includes('localhost/large:1 from large.tar.gz');
      await until('the archive to be imported', 180_000, imported, 500);
    });
    return {
      what: `archive of ${settings.archiveMegabytes} MB imported: RSS more, at most`,
      unit: 'MB',
      value: grownBytes / 1e6,
      budget: { of: 'value', limit: 10 },
    };
  } finally {
    rmSync(join(folder, 'large.tar.gz'), { force: true });
    rmSync(work, { recursive: true, force: true });
  }
}

const read = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // between two names
  }
};

/** A ConfigMap's file is renamed in: how long until a container that runs has the new text. */
async function changes({ agent, bed, watcher }: BenchWorld, settings: ImageSettings): Promise<Row> {
  const drop = (text: string) => {
    const object: Fields = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'follow' }, data: { text } };
    agent.drop('follow-map.yaml', JSON.stringify(object));
  };
  drop('0');
  const volumes = [{ name: 'conf', configMap: { name: 'follow' } }];
  const main = container('main', undefined, { volumeMounts: [{ name: 'conf', mountPath: '/conf' }] });
  agent.drop('follow.yaml', manifest(pod('follow', { volumes, containers: [main] })));
  const topic = agent.topic('pods/default/follow');
  await watcher.until(topic, (v) => (v as { status?: { phase?: string } } | undefined)?.status?.phase === 'Running', 60_000);
  const file = join(await rootOf(bed, 'follow'), 'conf/text');
  const times: number[] = [];
  for (let i = 1; i <= settings.changes; i++) {
    await sleep(1_500);
    const start = performance.now();
    drop(String(i));
    await until(`text ${i}`, 60_000, () => read(file) === String(i), 5);
    times.push(performance.now() - start);
  }
  agent.removeManifest('follow.yaml');
  agent.removeManifest('follow-map.yaml');
  await watcher.until(topic, (v) => v === undefined, 60_000);
  return row('ConfigMap changed → in the container', spread(times), { budget: { of: 'value', limit: 2000 } });
}

export async function measureImages(world: BenchWorld, settings: ImageSettings): Promise<readonly Row[]> {
  return [...(await updates(world, settings)), await archive(world, settings), await changes(world, settings)];
}
