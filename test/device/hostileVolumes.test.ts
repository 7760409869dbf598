/** What a privileged container does to the files it was given: nothing of the node's goes, and what is left behind is told. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Lab, startLab } from './lab.ts';
import { container, manifest, pod } from './manifest.ts';
import { until } from './process.ts';
import { eventsOf } from './story.ts';
import { gone, toldPod } from './truth.ts';

let lab: Lab;
let dir: string;
const pods = (): string => join(lab.agent.stateDir, 'pods');
before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'podsched-hostile-'));
  lab = await startLab('hostile');
  // as on a machine that systemd started: what is mounted there is seen by all
  mkdirSync(pods(), { recursive: true });
  execFileSync('mount', ['--bind', pods(), pods()]);
  execFileSync('mount', ['--make-shared', pods()]);
});
after(async () => {
  execFileSync('umount', ['-l', pods()]);
  await lab?.stop();
  rmSync(dir, { recursive: true, force: true });
});

test('mounts left in an emptyDir, links and pipes, a last-words file played with: the node’s disk stays, and the rest goes when it can', async () => {
  const disk = join(dir, 'disk');
  mkdirSync(join(disk, 'sub'), { recursive: true });
  writeFileSync(join(disk, 'sub/f'), 'precious');
  const script = [
    'mkdir -p /own/in /own/deep && mount --bind /disk /own/in && mount -t tmpfs none /own/deep && echo x >/own/deep/x',
    'ln -s /disk /own/link && ln -s ../../../../../../../../ /own/up && mkfifo /own/fifo',
    'rm -f /dev/termination-log; mv /dev/termination-log /dev/x; ln -s /etc/passwd /dev/termination-log',
    'umount /dev/termination-log && rm -f /dev/termination-log && ln -s /etc/passwd /dev/termination-log',
    'umount /etc/hosts && ln -sf /disk/sub/f /etc/hosts',
    'touch /own/done; trap "exit 3" TERM; sleep 2147483647 & wait',
  ].join('; ');
  const spec = {
    volumes: [
      { name: 'own', emptyDir: {} },
      { name: 'disk', hostPath: { path: disk } },
    ],
    containers: [
      container('main', ['sh', '-c', script], {
        securityContext: { privileged: true },
        volumeMounts: [
          { name: 'own', mountPath: '/own', mountPropagation: 'Bidirectional' },
          { name: 'disk', mountPath: '/disk' },
        ],
      }),
    ],
  };
  lab.agent.drop('bad.yaml', manifest(pod('bad', spec)));
  await until('it runs', 60_000, () => toldPod(lab, 'bad')?.status.phase === 'Running');
  const uid = toldPod(lab, 'bad')?.metadata.uid ?? '';
  const own = join(pods(), uid, 'volumes/kubernetes.io~empty-dir/own');
  await until('its deeds are done', 60_000, () => existsSync(join(own, 'done')));
  assert.equal(readFileSync(join(own, 'in/sub/f'), 'utf8'), 'precious', 'the mount came through');

  lab.agent.removeManifest('bad.yaml');
  await until('it is told', 60_000, async () =>
    (await eventsOf(lab.agent, 'bad')).some((e) => /FailedUnmount.*something is still mounted/.test(e)),
  );
  assert.equal(readFileSync(join(disk, 'sub/f'), 'utf8'), 'precious');
  assert.ok(existsSync(join(own, 'done')), 'nothing goes as long as something is mounted');

  for (const name of ['in', 'deep']) execFileSync('umount', [join(own, name)]);
  await gone(lab, 'bad', 120_000);
  await until('its folder is gone', 120_000, () => readdirSync(pods()).length === 0);
  assert.equal(readFileSync(join(disk, 'sub/f'), 'utf8'), 'precious');
});

test('a subPath and a subPathExpr hold, while a container of the pod swaps their folder for a link to the node all the time', async () => {
  mkdirSync(join(dir, 'outside/x'), { recursive: true });
  writeFileSync(join(dir, 'outside/x/secret'), 'secret');
  const swap = `mkdir -p /own/a/x; while true; do mv /own/a /own/b; ln -s ${join(dir, 'outside')} /own/a; rm -rf /own/a; mv /own/b /own/a; done`;
  const look = 'test -e /sub/secret && touch /own/escaped; echo x >>/own/starts; exit 1';
  const looker = (name: string, mount: object) =>
    container(name, ['sh', '-c', look], {
      env: [{ name: 'DIR', value: 'a' }],
      volumeMounts: [
        { name: 'own', mountPath: '/own' },
        { name: 'own', mountPath: '/sub', ...mount },
      ],
    });
  const spec = {
    volumes: [{ name: 'own', emptyDir: {} }],
    containers: [
      container('swapper', ['sh', '-c', swap], { volumeMounts: [{ name: 'own', mountPath: '/own' }] }),
      looker('path', { subPath: 'a/x' }),
      looker('expr', { subPathExpr: '$(DIR)/x' }),
    ],
  };
  lab.agent.drop('swap.yaml', manifest(pod('swap', spec, { annotations: { 'podsched.dev/crash-backoff': '100ms,200ms' } })));
  const own = (name: string): string => join(pods(), toldPod(lab, 'swap')?.metadata.uid ?? '', 'volumes/kubernetes.io~empty-dir/own', name);
  const starts = (): number => (existsSync(own('starts')) ? readFileSync(own('starts'), 'utf8').length / 2 : 0);
  await until('both were started again and again', 240_000, () => starts() >= 10);
  const escaped = existsSync(own('escaped'));
  lab.agent.removeManifest('swap.yaml');
  await gone(lab, 'swap', 120_000);
  assert.equal(escaped, false);
  assert.deepEqual(readdirSync(join(dir, 'outside')), ['x']);
  assert.equal(readFileSync(join(dir, 'outside/x/secret'), 'utf8'), 'secret');
});
