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
  await until('its deeds are done', 30_000, () => existsSync(join(own, 'done')));
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
