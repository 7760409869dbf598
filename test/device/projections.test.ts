/** ConfigMaps, Secrets and the downward API as files, on a real containerd: what containers find, how they follow, and that a Secret lies in memory only. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { V1Event } from '../../src/api/status.ts';
import { type Lab, startLab } from './lab.ts';
import { container, type Fields, manifest, pod, serve } from './manifest.ts';
import { sleep, until } from './process.ts';
import { podsOf, rootOf, statusOf } from './story.ts';
import { gone } from './truth.ts';

const canary = 'c4n4ry-0f-a-s3cr3t-f1le';
let lab: Lab;
before(async () => {
  lab = await startLab('projections');
});
after(async () => lab?.stop());

const drop = (kind: string, name: string, data: Fields): void =>
  lab.agent.drop(`${kind}-${name}.yaml`.toLowerCase(), JSON.stringify({ apiVersion: 'v1', kind, metadata: { name }, ...data }));

/** Modes as people write them, in both spellings. */
const inOctal = (text: string): string =>
  text.replace(/"(mode|defaultMode)": (\d+)/g, (_, field: string, mode: string) => {
    return `"${field}": ${field === 'mode' ? '0' : '0o'}${Number(mode).toString(8)}`;
  });

const teller = (labels: Fields = { app: 'cam' }): string =>
  inOctal(
    manifest(
      pod(
        'teller',
        {
          securityContext: { fsGroup: 2000 },
          volumes: [
            { name: 'conf', configMap: { name: 'app', items: [{ key: 'a.conf', path: 'sub/a', mode: 0o640 }] } },
            { name: 'whole', configMap: { name: 'app', defaultMode: 0o444 } },
            { name: 'key', secret: { secretName: 'key', defaultMode: 0o400 } },
            { name: 'all', projected: { defaultMode: 0o600, sources: [{ secret: { name: 'key' } }, { configMap: { name: 'app' } }] } },
            {
              name: 'info',
              downwardAPI: {
                items: [
                  { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } },
                  { path: 'name', fieldRef: { fieldPath: 'metadata.name' } },
                  { path: 'memory', resourceFieldRef: { containerName: 'main', resource: 'limits.memory', divisor: '1Mi' } },
                ],
              },
            },
          ],
          containers: [
            container('main', serve, {
              securityContext: { runAsUser: 1000 },
              resources: { limits: { memory: '24Mi' } },
              volumeMounts: [
                { name: 'conf', mountPath: '/conf' },
                { name: 'whole', mountPath: '/whole' },
                { name: 'key', mountPath: '/key' },
                { name: 'all', mountPath: '/all' },
                { name: 'info', mountPath: '/info' },
                { name: 'whole', mountPath: '/one', subPath: 'b' },
              ],
            }),
          ],
        },
        { labels },
      ),
    ),
  );

const running = async () =>
  (await lab.bed.cri.containers()).find((c) => c.state === 'running' && c.labels['io.kubernetes.pod.name'] === 'teller');

/** What a script says in the container, errors and all. */
async function sh(script: string): Promise<string> {
  const { stdout, stderr } = await lab.bed.cri.exec((await running())?.id ?? 'none', 'sh', '-c', script);
  return `${stdout}${stderr}`.trim();
}

const text = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '(none)';
  }
};

/** Long before a kubelet's minute; how soon it is the bench measures. */
async function follows(what: string, check: () => boolean): Promise<void> {
  const start = performance.now();
  while (!check()) {
    if (performance.now() - start > 30_000) throw new Error(`${what}: not in 30 s\n${lab.agent.log().slice(-3000)}`);
    await sleep(10);
  }
}

const events = async (): Promise<readonly V1Event[]> => (JSON.parse((await lab.agent.get('/events')).body) as { items: V1Event[] }).items;
const why = async (): Promise<string> => (await lab.agent.cli('why', 'teller')).stdout;
const told = (what: string, part: string): Promise<void> =>
  until(what, 60_000, async () => (await why()).includes(part)).catch(async (e) => {
    throw new Error(`${e}\n${await why()}\n${lab.agent.log().slice(-3000)}`);
  });

test('B1, L1: the pod waits for each object by its name, in whatever order they come, and finds its files in their modes', async () => {
  lab.agent.drop('teller.yaml', teller());
  await told('the pod to wait', 'configmap "app" not found');
  assert.match(await why(), /FailedMount/);
  drop('Secret', 'key', { data: { pin: Buffer.from(canary).toString('base64') } });
  drop('ConfigMap', 'app', { data: { 'a.conf': 'a = 1', b: 'b1', c: 'c1' }, binaryData: { bin: 'AAE=' } });
  await until('the pod to run', 60_000, async () => (await running()) !== undefined).catch(async (e) => {
    throw new Error(`${e}\n${await why()}\n${lab.agent.log().slice(-3000)}`);
  });
  const files = '/conf/sub/a /whole/b /key/pin /all/pin /all/b /info/labels';
  assert.equal(
    await sh(`stat -L -c '%a %g %n' ${files}`),
    '640 2000 /conf/sub/a\n444 2000 /whole/b\n440 2000 /key/pin\n640 2000 /all/pin\n640 2000 /all/b\n644 2000 /info/labels',
  );
  assert.equal(
    await sh('cat /conf/sub/a /whole/b /key/pin /all/b /info/labels /info/name /info/memory; ls /whole; od -An -tx1 /whole/bin'),
    `a = 1b1${canary}b1app="cam"teller24a.conf\nb\nbin\nc\n 00 01`,
  );
  assert.match(await sh('touch /conf/x /key/x /one; echo x > /all/pin'), /Read-only file system/);
  const types = await sh('for d in conf key all info; do echo $d $(stat -f -c %T /$d); done');
  assert.match(types, /key tmpfs\nall tmpfs\ninfo tmpfs/);
  assert.doesNotMatch(types, /conf tmpfs/);
});

test('L1: a change comes to the running container, all files at once; a subPath keeps what it had', async () => {
  const root = await rootOf(lab.bed, 'teller');
  drop('ConfigMap', 'app', { data: { 'a.conf': 'a = 2', b: 'b2', d: 'd2' } });
  await follows('the ConfigMap', () => text(`${root}/whole/b`) === 'b2');
  await follows('the others', () => text(`${root}/conf/sub/a`) === 'a = 2' && text(`${root}/all/d`) === 'd2');
  assert.deepEqual(
    readdirSync(`${root}/whole`)
      .filter((n) => !n.startsWith('..'))
      .sort(),
    ['a.conf', 'b', 'd'],
  );
  assert.equal(text(`${root}/one`), 'b1');

  drop('Secret', 'key', { stringData: { pin: `${canary}-2` } });
  await follows('the Secret', () => text(`${root}/key/pin`) === `${canary}-2` && text(`${root}/all/pin`) === `${canary}-2`);
  lab.agent.drop('teller.yaml', teller({ app: 'cam', tier: 'edge' }));
  await follows('the labels', () => text(`${root}/info/labels`) === 'app="cam"\ntier="edge"');
  assert.equal(await rootOf(lab.bed, 'teller'), root, 'nothing was restarted');
});

test('L1: a key and an object that are removed leave their files, are told, and follow again when they are back', async () => {
  const root = await rootOf(lab.bed, 'teller');
  drop('ConfigMap', 'app', { data: { b: 'b3' } });
  await follows('the rest', () => text(`${root}/whole/b`) === 'b3');
  assert.equal(text(`${root}/conf/sub/a`), 'a = 2');
  await told('the key to be missed', 'configmap references non-existent config key: a.conf');
  lab.agent.removeManifest('secret-key.yaml');
  await told('the Secret to be missed', 'secret "key" not found');
  assert.equal(text(`${root}/key/pin`), `${canary}-2`);
  let messages: string[] = [];
  await until('the event of it', 45_000, async () => {
    messages = (await events()).filter((e) => e.reason === 'FailedMount').map((e) => e.message);
    return messages.includes('MountVolume.SetUp failed for volume "key" : secret "key" not found');
  }).catch((e) => {
    throw new Error(`${e}\n${messages.join('\n')}`);
  });

  // an agent that comes anew goes on with what is there
  const data = readlinkSync(`${root}/key/..data`);
  const { ino } = lstatSync(`${root}/whole/..data`);
  await lab.agent.restart();
  await until('the agent to be back', 60_000, async () => (await lab.agent.get('/pods').catch(() => undefined))?.status === 200);
  drop('Secret', 'key', { stringData: { pin: `${canary}-3` } });
  await follows('the Secret to be back', () => text(`${root}/key/pin`) === `${canary}-3`);
  assert.notEqual(readlinkSync(`${root}/key/..data`), data);
  assert.equal(lstatSync(`${root}/whole/..data`).ino, ino, 'what did not change was not written');
  drop('ConfigMap', 'app', { data: { 'a.conf': 'a = 4', b: 'b3' } });
  await follows('the key to be back', () => text(`${root}/conf/sub/a`) === 'a = 4');
  await until('all to be well', 60_000, async () => !(await why()).includes('FailedMount'));
  assert.equal(await rootOf(lab.bed, 'teller'), root, 'nothing was restarted');
});

test('L1: whatever comes first, the pod runs when all are there', async () => {
  const kinds = ['Pod', 'ConfigMap', 'Secret'];
  const others = (...without: string[]) => kinds.filter((kind) => !without.includes(kind));
  const orders = kinds.flatMap((first) => others(first).map((second) => [first, second, ...others(first, second)]));
  assert.equal(orders.length, 6);
  const mounting = (name: string): string => {
    const volumes = [
      { name: 'conf', configMap: { name } },
      { name: 'key', secret: { secretName: name } },
    ];
    const volumeMounts = volumes.map((v) => ({ name: v.name, mountPath: `/${v.name}` }));
    return manifest(pod(name, { volumes, containers: [container('main', serve, { volumeMounts })] }));
  };
  const put = (kind: string, name: string): void => {
    if (kind === 'Pod') lab.agent.drop(`pod-${name}.yaml`, mounting(name));
    else drop(kind, name, kind === 'Secret' ? { stringData: { pin: `pin ${name}` } } : { data: { a: `a ${name}` } });
  };
  const of = async (name: string) => (await podsOf(lab.agent)).find((p) => p.metadata.name === name);
  const named = orders.map((order, i) => ({ order, name: `order-${i}` }));
  for (const { order, name } of named) {
    for (const kind of order) {
      put(kind, name);
      await sleep(300); // so that each is a reading of its own
    }
    await until(`${order} to run`, 60_000, async () => statusOf(await of(name), 'main')?.state.running !== undefined, 100).catch(
      async (e) => {
        throw new Error(`${e}\n${(await lab.agent.cli('why', name)).stdout}\n${lab.agent.log().slice(-3000)}`);
      },
    );
    const root = await rootOf(lab.bed, name);
    assert.deepEqual([text(`${root}/conf/a`), text(`${root}/key/pin`)], [`a ${name}`, `pin ${name}`], `${order}`);
    assert.equal(statusOf(await of(name), 'main')?.restartCount, 0, `${order}`);
  }
  for (const { name } of named) for (const kind of kinds) lab.agent.removeManifest(`${kind}-${name}.yaml`.toLowerCase());
  for (const { name } of named) await gone(lab, name);
});

test('the bytes of the Secret are in memory, in its manifest and in the checkpoint, and nowhere else', async () => {
  const { agent, bed, watcher } = lab;
  const found = [agent.dir, bed.dir].flatMap((dir) => {
    const script = 'find "$0" -xdev -type f -size -4000k -exec grep -l -a -e "$1" -e "$2" {} + 2>/dev/null || true';
    const out = execFileSync('sh', ['-c', script, dir, canary, Buffer.from(canary).toString('base64').slice(0, 24)], { encoding: 'utf8' });
    return out
      .split('\n')
      .filter(Boolean)
      .map((p) => p.replace(`${agent.dir}/`, ''));
  });
  const checkpoint = 'state/state/objects+Secret+default+key.json';
  assert.deepEqual(found.sort(), ['manifests/secret-key.yaml', checkpoint]);
  assert.equal(lstatSync(join(agent.dir, checkpoint)).mode & 0o777, 0o600);
  const bodies = await Promise.all(['/pods', '/sync', '/events', '/files'].map((path) => agent.get(path)));
  const said = [
    agent.log(),
    ...bodies.map((r) => r.body),
    JSON.stringify(watcher.heard),
    execFileSync('ps', ['axww', '-o', 'args='], { encoding: 'utf8' }),
  ].join('\n');
  assert.ok(!said.includes(canary));
  const uid = (await podsOf(agent)).find((p) => p.metadata.name === 'teller')?.metadata.uid ?? 'not told';
  assert.ok(readdirSync(join(agent.stateDir, 'pods')).includes(uid), `the folder of ${uid}`);
  agent.removeManifest('teller.yaml');
  await until('the pod to be gone', 60_000, async () => !readdirSync(join(agent.stateDir, 'pods')).includes(uid));
  assert.ok(!readFileSync('/proc/self/mountinfo', 'utf8').includes(uid));
});
