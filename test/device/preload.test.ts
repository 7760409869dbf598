/**
 * A node that never sees a registry: its sandbox image comes out of the program, its other images from archives in the state folder. On a real
 * containerd whose `sandbox_image` was set by `podsched doctor --fix`.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { V1Event } from '../../src/api/status.ts';
import { type Agent, startAgent } from './agent.ts';
import { type Bed, startBed } from './bed.ts';
import { imageArchive } from './images.ts';
import { dockerArchive, largeArchive, memoryGrowth, ownArchitecture } from './largeArchive.ts';
import { container, manifest, pod } from './manifest.ts';
import { mustRun, processes, until } from './process.ts';
import { podsOf } from './story.ts';

const ours = 'podsched.dev/pause:1';
let bed: Bed;
let agent: Agent;
let work: string;
let folder: string;

before(async () => {
  work = mkdtempSync(join(tmpdir(), 'podsched-archives-'));
  bed = await startBed({ name: 'preload', started: false });
  agent = await startAgent(bed, { nodeName: 'preload', started: false });
  folder = join(agent.stateDir, 'images');
  mkdirSync(folder, { recursive: true });
});
after(async () => {
  await agent?.remove();
  await bed?.stop();
  rmSync(work, { recursive: true, force: true });
});

/** Into the folder of images, whole, as a careful person does. */
function bring(path: string, name: string): void {
  copyFileSync(path, join(folder, `.${name}`));
  renameSync(join(folder, `.${name}`), join(folder, name));
}

/** None while the agent is starting. */
const pods = () => podsOf(agent).catch(() => []);

async function nodeEvents(since = ''): Promise<string[]> {
  const { items } = JSON.parse((await agent.get('/events')).body) as { items: V1Event[] };
  return items.filter((e) => e.involvedObject.kind === 'Node' && (e.lastTimestamp ?? '') >= since).map((e) => `${e.reason}: ${e.message}`);
}

const running = (name: string, timeoutMs = 90_000) =>
  until(`${name} to run`, timeoutMs, async () => {
    const found = (await pods()).find((p) => p.metadata.name === name);
    return found?.status.containerStatuses?.every((c) => c.state?.running !== undefined) === true;
  }).catch(async (e) => {
    throw new Error(`${e}\n${JSON.stringify(await pods())}\n${agent.log().slice(-3000)}`);
  });

const never = (image: string) => container('main', undefined, { image, imagePullPolicy: 'Never' });
const here = ownArchitecture;

test('on a node without a registry doctor names our sandbox image, the agent brings it, and a pod starts', async () => {
  const config = join(bed.dir, 'config.toml');
  const doctor = (...args: string[]) => agent.cli('doctor', '--config', agent.configFile, '--containerd-config', config, ...args);
  const fixed = await doctor('--fix');
  assert.match(fixed.stdout, /config\.toml names podsched\.dev\/pause:1 now; what was there is in .*before-podsched/);
  assert.match(fixed.stdout, /WRONG {2}containerd: nobody answers/);
  assert.equal(fixed.code, 1);
  await bed.startContainerd();
  const missing = await doctor();
  assert.match(missing.stdout, /WRONG {2}sandbox_image: podsched\.dev\/pause:1 is not here yet\n +Start podsched/);
  agent.drop('plain.yaml', manifest(pod('plain')));
  agent.start();
  await running('plain');
  // not a single try failed: the first sandbox waited for its image
  assert.ok(!agent.log().includes('podsched.dev/v2'), agent.log());
  const [sandbox] = await bed.cri.sandboxes();
  assert.ok(sandbox);
  const { Image } = JSON.parse(await bed.ctr('containers', 'info', sandbox.id)) as { Image: string };
  assert.equal(Image, ours);
  assert.match(await bed.ctr('images', 'ls', `name==${ours}`), /io\.cri-containerd\.pinned=pinned/);
  const healthy = await doctor();
  assert.match(healthy.stdout, /ok {5}sandbox_image: podsched\.dev\/pause:1 is here, and needs no registry/);
  assert.equal(healthy.code, 0);
  assert.deepEqual(
    readdirSync(agent.runDir).filter((f) => f.includes('pause')),
    [],
  );
});

test('in a pod that shares its processes our pause is PID 1 and reaps what is orphaned', async () => {
  const orphans = ['sh', '-c', 'while :; do (sleep 0.05 & sleep 0.05 & sleep 0.05 &); sleep 0.2; done'];
  agent.drop('shared.yaml', manifest(pod('shared', { shareProcessNamespace: true, containers: [container('main', orphans)] })));
  await running('shared');
  const look = 'cat /proc/1/cmdline; echo; for i in 1 2 3 4 5 6; do cat /proc/[0-9]*/stat | grep -c ") Z "; sleep 0.3; done';
  let seen = '';
  await until('pause to reap', 60_000, async () => {
    seen = (await agent.cli('exec', 'shared', '--', 'sh', '-c', look)).stdout.trim();
    const [first, ...zombies] = seen.split('\n');
    if (zombies.length !== 6) return false; // not started yet
    assert.equal(first, '/pause\0');
    // those that ended this very moment may be seen; where nobody reaps there would be none without any after a second, and ever more
    return zombies.slice(3).some((n) => n === '0');
  }).catch((e) => {
    throw new Error(`${e}\n${seen}`);
  });
  const init = processes().filter((p) => p.argv[0] === '/pause');
  assert.ok(init.length >= 2); // of both pods
});

test('archives of both kinds, packed or not, are images of pods that never pull; a broken one and one for another machine are told', async () => {
  const recipe = (n: string) => imageArchive({ ref: `localhost/pre-${n}:1`, cmd: ['sh'], env: [`PRE=${n}`] });
  const [plain, packed, zst] = [await recipe('docker'), await recipe('gz'), await recipe('zst')];
  await mustRun('sh', ['-c', `gzip -c '${packed}' >'${work}/gz' && zstd -q '${zst}' -o '${work}/zst'`]);
  // an OCI archive: exported, and without what docker needs in it
  await bed.ctr('images', 'tag', 'localhost/busybox:2', 'localhost/pre-oci:1');
  await bed.ctr('images', 'export', join(work, 'oci'), 'localhost/pre-oci:1');
  await bed.ctr('images', 'rm', 'localhost/pre-oci:1');
  mkdirSync(join(work, 'layout'));
  await mustRun('tar', ['-C', join(work, 'layout'), '-xf', join(work, 'oci')]);
  await mustRun('tar', ['-C', join(work, 'layout'), '-cf', join(work, 'oci'), 'oci-layout', 'index.json', 'blobs']);
  await agent.stop();
  bring(plain, 'docker.tar');
  bring(join(work, 'gz'), 'gz.tgz');
  bring(join(work, 'zst'), 'zst.tar.zst');
  bring(join(work, 'oci'), 'oci.tar');
  writeFileSync(join(folder, 'cut.tar'), readFileSync(plain).subarray(0, 400_000));
  const layer = join(work, 'other.tar');
  writeFileSync(join(work, 'hello'), 'hello');
  execFileSync('tar', ['-C', work, '-cf', layer, 'hello']);
  bring(await dockerArchive(work, 'other', 'localhost/other:1', layer, here === 'arm64' ? 'riscv64' : 'arm64'), 'other.tar');
  const names = ['docker', 'gz', 'zst', 'oci'];
  for (const n of names) agent.drop(`pre-${n}.yaml`, manifest(pod(`pre-${n}`, { containers: [never(`localhost/pre-${n}:1`)] })));
  agent.start();
  for (const n of names) await running(`pre-${n}`);
  // one archive after the other
  let events: string[] = [];
  const imported = (n: string) => events.some((e) => e.startsWith(`Imported: Imported localhost/pre-${n}:1 from ${n}.`));
  const failures = () => events.filter((e) => e.startsWith('ImportFailed'));
  await until('all archives to be read', 60_000, async () => {
    events = await nodeEvents();
    return names.every(imported) && failures().length >= 2;
  }).catch((e) => {
    throw new Error(`${e}\n${events.join('\n')}`);
  });
  const failed = failures();
  assert.equal(failed.length, 2, failed.join('\n'));
  assert.ok(failed.some((e) => /cut\.tar: .*cut short/.test(e)));
  assert.ok(failed.some((e) => new RegExp(`other\\.tar: WrongPlatform: image \\w+, node ${here} \\(localhost/other:1\\)`).test(e)));
  const condition = async () => {
    const { items } = JSON.parse((await agent.get('/conditions')).body) as { items: { type: string; message: string }[] };
    return items.find((c) => c.type === 'ImportFailed')?.message ?? '';
  };
  await until('the condition to be told', 45_000, async () => /cut\.tar/.test(await condition()));
  // nobody was refused an image while it was being imported
  const { items: all } = JSON.parse((await agent.get('/events')).body) as { items: V1Event[] };
  assert.deepEqual(
    all.filter((e) => /ErrImage|Failed$|BackOff/.test(e.reason) && e.involvedObject.kind === 'Pod').map((e) => e.message),
    [],
  );
});

test('after a restart of the agent unchanged archives are not read again; an image that was lost is', async () => {
  await agent.stop();
  await bed.ctr('images', 'rm', '--sync', 'localhost/pre-gz:1');
  const whole = await bed.ctr('images', 'ls', '-q');
  assert.ok(!whole.includes('pre-gz'));
  await new Promise((resolve) => setTimeout(resolve, 1100)); // events are kept over a restart, and their times have seconds
  const restarted = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
  agent.start();
  await until('the agent', 60_000, () => existsSync(agent.socket));
  await until('the lost image to be back', 60_000, async () => (await bed.ctr('images', 'ls', '-q')).includes('localhost/pre-gz:1'));
  await until('the event of it', 45_000, async () =>
    (await nodeEvents(restarted)).some((e) => e.startsWith('Imported: Imported localhost/pre-gz:1')),
  );
  const imported = (await nodeEvents(restarted)).filter((e) => e.startsWith('Imported:'));
  assert.equal(imported.filter((e) => !e.includes('pre-gz')).length, 0, imported.join('\n'));
});

test('an archive that comes while the agent runs starts the pod that waits for it', async () => {
  agent.drop('late.yaml', manifest(pod('late', { containers: [never('localhost/late:1')] })));
  await until('it to wait', 60_000, async () => {
    const found = (await pods()).find((p) => p.metadata.name === 'late');
    return found?.status.containerStatuses?.[0]?.state?.waiting?.reason === 'ErrImageNeverPull';
  });
  bring(await imageArchive({ ref: 'localhost/late:1', cmd: ['sh'], env: ['LATE=1'] }), 'late.tar');
  await running('late');
});

test('a large archive goes past the memory of the agent', async () => {
  const megabytes = 64;
  const archive = await largeArchive(work, 'localhost/large:1', megabytes);
  const { grownBytes } = await memoryGrowth(agent.pid, async () => {
    renameSync(archive, join(folder, 'large.tar.gz'));
    const imported = async () => (await nodeEvents()).some((e) => e.includes('localhost/large:1 from large.tar.gz'));
    await until('the large one', 180_000, imported, 500);
  });
  const grown = grownBytes / 1e6;
  assert.ok(grown < megabytes / 4, `${grown} MB more while ${megabytes} MB were imported`); // the bench has the promise
});
