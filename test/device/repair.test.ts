/**
 * An image whose files a power cut left empty, on a real containerd: the snapshot is recorded for whole and its program has no bytes. The pod
 * comes up after one repair, from a registry or from an archive, and it is told; what cannot be had again is kept.
 */
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Agent, startAgent } from './agent.ts';
import { type Bed, startBed } from './bed.ts';
import { type ImageRegistry, startImageRegistry } from './imageRegistry.ts';
import { layeredArchive, program } from './layeredImage.ts';
import { container, manifest, pod } from './manifest.ts';
import { mustRun, until } from './process.ts';
import { eventsOf, podsOf, statusOf } from './story.ts';

let bed: Bed;
let registry: ImageRegistry;
before(async () => {
  [bed, registry] = await Promise.all([startBed({ name: 'repair' }), startImageRegistry()]);
});
after(async () => {
  await Promise.allSettled([registry?.stop(), bed?.stop()]);
});

/** Pushes an image with a layer of its own, and says its name. */
async function pushed(name: string, mark = name): Promise<string> {
  const archive = join(bed.dir, `${name}.tar`);
  const ref = `${registry.host}/${name}:1`;
  await layeredArchive(archive, ref, mark, [`NAME=${name}`]);
  await mustRun('skopeo', [
    '--insecure-policy',
    'copy',
    '--quiet',
    '--dest-tls-verify=false',
    `docker-archive:${archive}`,
    `docker://${ref}`,
  ]);
  return ref;
}

/** The programs of layered images in the snapshots of the bed, by what is beside them. */
async function programs(mark: string): Promise<string[]> {
  const found = await mustRun('find', [join(bed.dir, 'root'), '-path', `*/fs${program}`]);
  const all = found.split('\n').filter(Boolean);
  const marked = await Promise.all(all.map(async (path) => (await mustRun('cat', [join(path, '../mark')])) === mark));
  return all.filter((_, i) => marked[i]);
}

/** As the power cut left it: the name is there, with its mode, and nothing in it. */
async function damage(mark: string): Promise<void> {
  let paths: string[] = [];
  // what was replaced before goes a moment later
  await until('the image to be unpacked once', 45_000, async () => {
    paths = await programs(mark);
    return paths.length === 1;
  }).catch(() => assert.equal(paths.length, 1, 'the image is unpacked once'));
  for (const path of paths) {
    rmSync(path);
    writeFileSync(path, '', { mode: 0o755 });
  }
}

/** Its container is taken from it, so that it starts anew. */
async function killed(name: string): Promise<void> {
  const mine = (await bed.cri.containers()).filter((c) => c.labels['io.kubernetes.pod.name'] === name && c.state === 'running');
  for (const { id } of mine) await bed.ctr('tasks', 'kill', '-s', 'SIGKILL', id);
}

const sleeper = (name: string, image: string, policy?: string): string =>
  manifest(
    pod(
      name,
      { containers: [{ ...container('main', []), command: undefined, image, ...(policy && { imagePullPolicy: policy }) }] },
      { annotations: { 'podsched.dev/crash-backoff': '1s,1s' } },
    ),
  );

const main = async (agent: Agent, name: string) =>
  statusOf(
    (await podsOf(agent).catch(() => [])).find((p) => p.metadata.name === name),
    'main',
  );

const runs = (agent: Agent, name: string, restarts: number, timeoutMs = 90_000) =>
  until(`${name} to run after ${restarts} restarts`, timeoutMs, async () => {
    const status = await main(agent, name);
    return status?.state.running !== undefined && status.restartCount >= restarts;
  });

const repairs = async (agent: Agent, name: string) => (await eventsOf(agent, name)).filter((e) => e.startsWith('ImageRepair'));

async function withAgent(nodeName: string, prepare: (stateDir: string) => void, act: (agent: Agent) => Promise<void>): Promise<void> {
  const agent = await startAgent(bed, { nodeName, started: false });
  try {
    mkdirSync(join(agent.stateDir, 'images'), { recursive: true, mode: 0o700 });
    prepare(agent.stateDir);
    agent.start();
    await act(agent);
  } catch (e) {
    throw new Error(`${e instanceof Error ? e.message : String(e)}\nthe agent's last words:\n${agent.log().slice(-4000)}`, { cause: e });
  } finally {
    await agent.remove();
    const mine = (await bed.cri.sandboxes()).filter((s) => s.labels['podsched.dev/managed'] === nodeName);
    await Promise.all(mine.map((s) => bed.cri.stopSandbox(s.id).then(() => bed.cri.removeSandbox(s.id))));
  }
}

test('G1: a pulled image whose program is empty is pulled again once: the pod comes up, and it is told', async () => {
  const image = await pushed('pulled');
  await withAgent(
    'repair-pulled',
    () => {},
    async (agent) => {
      agent.drop('a.yaml', sleeper('pulled', image));
      await runs(agent, 'pulled', 0);
      const id = (await bed.ctr('images', 'ls', `name==${image}`)).match(/sha256:[0-9a-f]{64}/)?.[0];
      const { restartCount = 0 } = (await main(agent, 'pulled')) ?? {};
      await damage('pulled');
      registry.forgetRequests();
      await killed('pulled');
      await runs(agent, 'pulled', restartCount + 2);
      assert.deepEqual(await repairs(agent, 'pulled'), [
        `ImageRepaired: Image "${image}" was damaged (exec ${program}: exec format error), as after a power cut; it was removed and pulled again`,
      ]);
      const [path = ''] = await programs('pulled');
      assert.equal(statSync(path).size, statSync('/bin/busybox').size);
      assert.equal((await bed.ctr('images', 'ls', `name==${image}`)).match(/sha256:[0-9a-f]{64}/)?.[0], id);
      // its own layer came over the line, and the one that others have did not
      assert.equal(registry.requests.filter((r) => r.kind === 'blob' && r.method === 'GET' && r.bytes > 100_000).length, 1);
      // others' images are as they were
      assert.match(await bed.ctr('images', 'ls', '-q'), /localhost\/busybox:1/);

      // in this boot it is not done again
      await damage('pulled');
      await killed('pulled');
      await until('the second damage to be told', 60_000, async () => (await repairs(agent, 'pulled')).length >= 2);
      assert.match((await repairs(agent, 'pulled'))[1] ?? '', /its repair was tried once already in this boot/);
    },
  );
});

test('an image that came as an archive is imported again, and needs no registry', async () => {
  const image = 'localhost/preloaded:1';
  const archive = join(bed.dir, 'preloaded.tar');
  await layeredArchive(archive, image, 'preloaded');
  await withAgent(
    'repair-preloaded',
    (stateDir) => copyFileSync(archive, join(stateDir, 'images/preloaded.tar')),
    async (agent) => {
      agent.drop('a.yaml', sleeper('preloaded', image, 'Never'));
      await runs(agent, 'preloaded', 0);
      const { restartCount = 0 } = (await main(agent, 'preloaded')) ?? {};
      await damage('preloaded');
      await killed('preloaded');
      await runs(agent, 'preloaded', restartCount + 2);
      assert.deepEqual(await repairs(agent, 'preloaded'), [
        `ImageRepaired: Image "${image}" was damaged (exec ${program}: exec format error), as after a power cut; it was removed and imported again from its archive`,
      ]);
    },
  );
});

test('a damaged image whose registry is away is kept and told, and repaired when it is back', async () => {
  const image = await pushed('away');
  await withAgent(
    'repair-away',
    () => {},
    async (agent) => {
      agent.drop('a.yaml', sleeper('away', image));
      await runs(agent, 'away', 0);
      await registry.setGone(true);
      try {
        await damage('away');
        await killed('away');
        await until('the damage to be told', 60_000, async () => (await repairs(agent, 'away')).length > 0);
        assert.match(
          (await repairs(agent, 'away'))[0] ?? '',
          /^ImageRepairFailed: .*; it is kept, because its registry has not answered: /,
        );
        assert.match(await bed.ctr('images', 'ls', '-q'), new RegExp(image));
        assert.equal((await programs('away')).length, 1);
      } finally {
        await registry.setGone(false);
      }
      const repaired = async () => (await repairs(agent, 'away')).filter((e) => e.startsWith('ImageRepaired:'));
      await until('the image to be replaced', 120_000, async () => (await repaired()).length === 1);
      await runs(agent, 'away', 2);
      assert.equal((await programs('away')).length, 1);
    },
  );
});

test('two images that share the damaged layer come up, each after a repair of its own that did not help and one together', async () => {
  const names = ['twin-a', 'twin-b'];
  const images = await Promise.all(names.map((name) => pushed(name, 'twins')));
  await withAgent(
    'repair-shared',
    () => {},
    async (agent) => {
      for (const [i, name] of names.entries()) agent.drop(`${name}.yaml`, sleeper(name, images[i] ?? ''));
      for (const name of names) await runs(agent, name, 0);
      await damage('twins');
      for (const name of names) await killed(name);
      const whole = async () => {
        const [path = ''] = await programs('twins');
        return statSync(path, { throwIfNoEntry: false })?.size === statSync('/bin/busybox').size;
      };
      await until('the layer to be fetched anew', 90_000, whole, 500);
      for (const name of names) await runs(agent, name, 2);
      const said = (await Promise.all(names.map((name) => repairs(agent, name)))).flat();
      assert.equal(said.filter((e) => /what may share the damage/.test(e)).length, 1, said.join('\n'));
      assert.equal(said.filter((e) => e.startsWith('ImageRepaired:')).length, 3, said.join('\n'));
      // of the first that failed again; whether the other had failed again by then, or was just being started (then they are kept for
      // that time), is a matter of the moment
      const failed = said.filter((e) => e.startsWith('ImageRepairFailed:'));
      assert.ok(failed.length >= 1, said.join('\n'));
      for (const e of failed) assert.match(e, /its repair was tried once already in this boot|runs from it/);
    },
  );
});
