/** Volumes, names and last words of whole pods on a real containerd: what containers find, what stays for how long, and that nothing else is left. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { ToldPod } from '../../src/api/status.ts';
import { type Lab, startLab } from './lab.ts';
import { container, exit, type Fields, manifest, type PodText, pod, serve } from './manifest.ts';
import { until } from './process.ts';
import { eventsOf, statusOf } from './story.ts';
import { agreed, footprint, gone, toldPod, toldSync } from './truth.ts';

let lab: Lab;
let dir: string;
const resolv = (): string => join(dir, 'resolv.conf');
before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'podsched-volumes-'));
  writeFileSync(resolv(), 'nameserver 192.0.2.1\nsearch attic.example\n');
  lab = await startLab('volumes', { config: { resolvConf: resolv() } });
});
after(async () => {
  await lab?.stop();
  rmSync(dir, { recursive: true, force: true });
});

const drop = (of: PodText): string => {
  lab.agent.drop(`${of.metadata.name}.yaml`, manifest(of));
  return of.metadata.name;
};
const runs = (p: ToldPod): boolean => p.status.phase === 'Running' && p.status.containerStatuses?.every((c) => c.ready) === true;
/** What a script says in a running container, errors and all. Not through the agent, which may be away. */
async function sh(name: string, of: string, script: string): Promise<string> {
  const found = (await lab.bed.cri.containers()).find(
    (c) => c.state === 'running' && c.name === of && c.labels['io.kubernetes.pod.name'] === name,
  );
  const { stdout, stderr } = await lab.bed.cri.exec(found?.id ?? 'none', 'sh', '-c', script);
  return `${stdout}${stderr}`.trim();
}
const mountsBelow = (folder: string): string[] =>
  readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((point) => point.startsWith(`${folder}/`));
const podFolder = (uid: string): string => join(lab.agent.stateDir, 'pods', uid);

describe('volumes and files of pods', { concurrency: 5 }, () => {
  test('containers share an emptyDir, of memory too, and hostPaths; all of it outlives a container and an agent, and only the node’s own outlives the pod', async () => {
    const [made, file] = [join(dir, 'made/deep'), join(dir, 'settings')];
    writeFileSync(file, 'precious\n', { mode: 0o600 });
    const name = drop(
      pod('store', {
        securityContext: { fsGroup: 2000 },
        volumes: [
          { name: 'own' },
          { name: 'memory', emptyDir: { medium: 'Memory', sizeLimit: '8Mi' } },
          { name: 'made', hostPath: { path: made, type: 'DirectoryOrCreate' } },
          { name: 'file', hostPath: { path: file, type: 'File' } },
        ],
        containers: [
          container('writer', serve, {
            securityContext: { runAsUser: 1000 },
            volumeMounts: [
              { name: 'own', mountPath: '/own', subPath: 'a/b' },
              { name: 'memory', mountPath: '/memory' },
            ],
          }),
          container('reader', serve, {
            volumeMounts: [
              { name: 'own', mountPath: '/own', readOnly: true },
              { name: 'memory', mountPath: '/memory' },
              { name: 'made', mountPath: '/made' },
              { name: 'file', mountPath: '/etc/settings', readOnly: true },
            ],
          }),
        ],
      }),
    );
    const first = await agreed(lab, name, runs);
    const uid = first.pod.metadata.uid ?? '';
    assert.equal(
      await sh(name, 'writer', 'echo x >/own/f && echo z >/memory/h && stat -c "%u:%g" /own/f /memory/h; id -G'),
      '1000:2000\n1000:2000\n1000 2000',
    );
    assert.match(await sh(name, 'writer', 'df -k /memory; dd if=/dev/zero of=/memory/big bs=1M count=9'), /\s8192\s[\s\S]*No space left/);
    await sh(name, 'writer', 'rm /memory/big');
    assert.equal(
      await sh(name, 'reader', 'cat /own/a/b/f /memory/h /etc/settings; echo kept >/made/k; echo no >/own/g; echo no >/etc/settings'),
      "x\nz\nprecious\nsh: can't create /own/g: Read-only file system\nsh: can't create /etc/settings: Read-only file system",
    );
    assert.equal(readFileSync(join(made, 'k'), 'utf8'), 'kept\n');

    const writer = first.shown.containers.find((c) => c.name === 'writer');
    await lab.bed.ctr('tasks', 'kill', '--signal', 'SIGKILL', writer?.id ?? '');
    const second = await agreed(lab, name, (p) => runs(p) && statusOf(p, 'writer')?.restartCount === 1);
    assert.equal(await sh(name, 'writer', 'cat /own/f /memory/h'), 'x\nz');
    assert.ok(mountsBelow(podFolder(uid)).length >= 1, 'the memory is a mount');

    await lab.agent.kill9();
    lab.agent.start();
    await until('the agent answers', 60_000, async () => (await lab.agent.get('/pods').catch(() => undefined))?.status === 200);
    const third = await agreed(lab, name, runs);
    assert.deepEqual(footprint(third.shown), footprint(second.shown));
    assert.equal(await sh(name, 'writer', 'cat /own/f /memory/h; echo y >>/own/f'), 'x\nz');
    assert.equal(await sh(name, 'reader', 'cat /own/a/b/f'), 'x\ny');

    lab.agent.removeManifest(`${name}.yaml`);
    await gone(lab, name);
    await until('its folder is gone', 45_000, () => !existsSync(podFolder(uid)));
    assert.deepEqual(mountsBelow(podFolder(uid)), []);
    assert.equal(readFileSync(join(made, 'k'), 'utf8') + readFileSync(file, 'utf8'), 'kept\nprecious\n');
  });

  test('a hostPath that is missing is waited for with its name, and the pod starts when it is there', async () => {
    const disk = join(dir, 'disk');
    const mount = { volumeMounts: [{ name: 'disk', mountPath: '/disk' }] };
    const name = drop(
      pod('patient', { volumes: [{ name: 'disk', hostPath: { path: disk } }], containers: [container('main', serve, mount)] }),
    );
    await lab.watcher
      .untilAll('it waits', () => toldSync(lab, name)?.reason === 'FailedMount')
      .catch((e) => {
        throw new Error(`${e}\n${JSON.stringify([toldSync(lab, name), toldPod(lab, name)?.status])}`);
      });
    const sync = toldSync(lab, name);
    assert.equal(sync?.phase, 'Waiting');
    assert.match(sync?.message ?? '', new RegExp(`"disk".*${disk} does not exist`));
    assert.equal(toldPod(lab, name)?.status.phase, 'Pending');
    assert.ok(!existsSync(disk), 'nobody made it');
    assert.ok((await eventsOf(lab.agent, name)).some((e) => e.startsWith('FailedMount: MountVolume.SetUp failed for volume "disk"')));
    mkdirSync(disk);
    writeFileSync(join(disk, 'f'), 'here');
    await agreed(lab, name, runs, 90_000);
    assert.equal(await sh(name, 'main', 'cat /disk/f'), 'here');
  });

  test('pods find each other by name, also after one was replaced and has another address; aliases and servers of the node are there and follow it', async () => {
    const site = (text: string, more: Fields[] = []) => [
      container('main', [
        'sh',
        '-c',
        `mkdir /www; echo ${text} >/www/index.html; httpd -p 8080 -h /www; trap 'exit 0' TERM; sleep 2147483647 & wait`,
      ]),
      ...more.map((_, i) => container(`extra-${i}`)),
    ];
    const client = drop(pod('client', { hostAliases: [{ ip: '192.0.2.10', hostnames: ['nas', 'nas.lan'] }] }));
    const { shown } = await agreed(lab, client, runs);
    drop(pod('web', { containers: site('one') }));
    const first = await agreed(lab, 'web', runs);
    // a static busybox has no names of its own: neither wget nor ping works in the image
    const ask = (host: string) =>
      `ip=$(awk '{for (i = 2; i <= NF; i++) if ($i == "${host}") print $1}' /etc/hosts); printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 $ip 8080 | tail -n 1`;
    const answers = () => sh(client, 'main', `${ask('web')}; ${ask('web.default')}`);
    await until('the first answer', 45_000, async () => (await answers()) === 'one\none').catch(async (e) => {
      throw new Error(`${e}\n${await answers()}\n${await sh(client, 'main', 'cat /etc/hosts')}`);
    });
    assert.match(await sh(client, 'main', 'cat /etc/hosts'), /^192\.0\.2\.10\tnas\tnas\.lan$/m);
    const inode = await sh(client, 'main', 'stat -c %i /etc/hosts /etc/resolv.conf');

    drop(pod('web', { containers: site('two', [{}]) }));
    const second = await agreed(lab, 'web', (p) => runs(p) && p.metadata.uid !== first.pod.metadata.uid);
    assert.notEqual(second.pod.status.podIP, first.pod.status.podIP);
    await until('the second answer', 45_000, async () => (await answers()) === 'two\ntwo');
    const hosts = await sh(client, 'main', 'cat /etc/hosts');
    assert.ok(hosts.includes(`${second.pod.status.podIP}\tweb\tweb.default`) && !hosts.includes(`${first.pod.status.podIP}\tweb`), hosts);

    assert.match(await sh(client, 'main', 'cat /etc/resolv.conf'), /^nameserver 192\.0\.2\.1$/m);
    writeFileSync(resolv(), 'nameserver 192.0.2.53\n');
    await until('the new server', 45_000, async () => /^nameserver 192\.0\.2\.53$/m.test(await sh(client, 'main', 'cat /etc/resolv.conf')));
    assert.ok(!(await sh(client, 'main', 'cat /etc/resolv.conf')).includes('192.0.2.1\n'));
    assert.equal(await sh(client, 'main', 'stat -c %i /etc/hosts /etc/resolv.conf'), inode, 'in place');
    assert.deepEqual(footprint((await agreed(lab, client, runs)).shown), footprint(shown));

    lab.agent.removeManifest('web.yaml');
    await gone(lab, 'web');
    await until('the name is gone', 45_000, async () => !(await sh(client, 'main', 'cat /etc/hosts')).includes('web'));
  });

  test('the last words of a container are told: its file, the end of its log when it failed without one', async () => {
    const end = (name: string, script: string, more: Fields = {}) => container(name, ['sh', '-c', script], more);
    const fallback = { terminationMessagePolicy: 'FallbackToLogsOnError' };
    const name = drop(
      pod('words', {
        restartPolicy: 'Never',
        containers: [
          end('file', 'echo in the log; printf "in the file" >/dev/termination-log; exit 3'),
          // the runtime reads the two streams apart: which line it writes first is its own affair
          end('log', 'echo first; sleep 2; echo the last line >&2; exit 4', fallback),
          end('both', 'echo in the log; printf chosen >/tmp/last; exit 5', { ...fallback, terminationMessagePath: '/tmp/last' }),
          end('well', 'echo in the log', fallback),
          container('none', exit(6)),
        ],
      }),
    );
    const { pod: told } = await agreed(lab, name, (p) => p.status.phase === 'Failed');
    const words = (p: ToldPod) =>
      Object.fromEntries((p.status.containerStatuses ?? []).map((c) => [c.name, c.state.terminated?.message?.trimEnd()]));
    const expected = { file: 'in the file', log: 'first\nthe last line', both: 'chosen', well: undefined, none: undefined };
    assert.deepEqual(words(told), expected);
    const listed = JSON.parse((await lab.agent.get('/pods')).body) as { items: ToldPod[] };
    const again = listed.items.find((p) => p.metadata.name === name);
    assert.ok(again);
    assert.deepEqual(words(again), expected);
    lab.agent.removeManifest(`${name}.yaml`);
    await gone(lab, name);
  });
});

test('of all pods that are gone no folder and no mount is left', async () => {
  for (const file of readdirSync(lab.agent.manifests)) lab.agent.removeManifest(file);
  await Promise.all(['patient', 'client'].map((n) => gone(lab, n)));
  await until('no folder is left', 45_000, () => readdirSync(join(lab.agent.stateDir, 'pods')).length === 0);
  assert.deepEqual(mountsBelow(lab.agent.dir), []);
  assert.deepEqual(lab.witness.offences, []);
});
