/** Field cases G9 and C11 on a real containerd: a small disk for pods' folders, who fills it, who breaks a limit, and that they come back. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { ToldPod, V1Event } from '../../src/api/status.ts';
import { type Lab, startLab } from './lab.ts';
import { container, type Fields, manifest, pod } from './manifest.ts';
import { sleep, until } from './process.ts';
import { toldPod } from './truth.ts';

let lab: Lab;
let dir: string;

before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'podsched-eviction-'));
  mkdirSync(join(dir, 'state'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', join(dir, 'state')]);
  lab = await startLab('eviction', {
    config: { stateDir: join(dir, 'state'), evictionHard: { 'nodefs.available': '40%' }, evictionPressureTransitionPeriod: '20s' },
  });
});
after(async () => {
  await lab?.stop();
  execFileSync('umount', ['-l', join(dir, 'state')]);
  rmSync(dir, { recursive: true, force: true });
});

const data = { volumeMounts: [{ name: 'data', mountPath: '/data' }] };
const writes = (script: string, more: Fields = {}): Fields => ({
  volumes: [{ name: 'data', emptyDir: {} }],
  containers: [container('main', ['sh', '-c', `${script}; trap 'exit 0' TERM; sleep 2147483647 & wait`], data)],
  ...more,
});
const fill = (name: string, mebibytes: number) => `dd if=/dev/zero of=/data/${name} bs=1M count=${mebibytes} 2>/dev/null`;
const drop = (name: string, spec: Fields): void => lab.agent.drop(`${name}.yaml`, manifest(pod(name, spec)));
const isReady = (name: string): boolean => toldPod(lab, name)?.status.containerStatuses?.every((c) => c.ready) === true;
/** What was told of its eviction, also when it has come back since. */
const evictionOf = (name: string): ToldPod | undefined =>
  lab.watcher.heard
    .filter((h) => h.topic.endsWith(`/pods/default/${name}`) && h.text.includes('"Evicted"'))
    .map((h) => JSON.parse(h.text) as ToldPod)
    .find((p) => p.status.reason === 'Evicted');
const wasEvicted = (name: string): boolean => evictionOf(name) !== undefined;
const uidOf = (name: string): string => toldPod(lab, name)?.metadata.uid ?? '';
const events = async () => (JSON.parse((await lab.agent.get('/events')).body) as { items: V1Event[] }).items;
const sandboxesOf = async (uid: string): Promise<number> => (await lab.bed.cri.sandboxes()).filter((s) => s.uid === uid).length;

describe('eviction', () => {
  test('G9, C11: one pod fills the disk: only that one goes, its files too, and it comes back', async () => {
    drop('critical', writes(fill('it', 8), { priorityClassName: 'system-node-critical' }));
    drop('idle', writes('true'));
    await until('both run', 60_000, () => isReady('critical') && isReady('idle'));
    const before = ['critical', 'idle'].map(uidOf);
    // only in its first life
    mkdirSync(join(dir, 'once'));
    const writing = writes(`mkdir /once/was || exec sleep 2147483647; for i in $(seq 20); do ${fill('$i', 2)}; sleep 1; done`);
    drop('writer', {
      volumes: [
        { name: 'data', emptyDir: {} },
        { name: 'once', hostPath: { path: join(dir, 'once') } },
      ],
      containers: [
        container('main', (writing.containers as { command: string[] }[])[0]?.command ?? [], {
          volumeMounts: [...data.volumeMounts, { name: 'once', mountPath: '/once' }],
        }),
      ],
    });
    await until('it runs', 60_000, () => isReady('writer'));
    await until('it is evicted', 90_000, () => wasEvicted('writer'));
    const writer = evictionOf('writer')?.metadata.uid ?? '';
    assert.match(
      evictionOf('writer')?.status.message ?? '',
      /^The node was low on resource: ephemeral-storage\. Threshold quantity: \d+\w*, available: \d+\w*\. (Container main was using \d+\w*, request is 0, has larger consumption of ephemeral-storage\. )?$/,
    );
    await until('nothing of it is left', 60_000, async () => (await sandboxesOf(writer)) === 0);
    await until('it comes back', 120_000, () => isReady('writer') && uidOf('writer') !== writer);
    assert.deepEqual(['critical', 'idle'].map(uidOf), before);
    assert.deepEqual(
      (await events()).filter((e) => e.reason === 'Evicted').map((e) => e.involvedObject.name),
      ['writer'],
    );
    assert.deepEqual(lab.witness.offences, []);
  });

  test('a pod over the size of its emptyDir is evicted within a minute, and comes back by itself', async () => {
    const spec = writes(fill('it', 4));
    drop('capped', { ...spec, volumes: [{ name: 'data', emptyDir: { sizeLimit: '2Mi' } }] });
    await until('it runs', 60_000, () => isReady('capped'));
    await until('it is evicted', 90_000, () => wasEvicted('capped'));
    const capped = evictionOf('capped')?.metadata.uid ?? '';
    assert.equal(evictionOf('capped')?.status.message, 'Usage of EmptyDir volume "data" exceeds the limit "2Mi". ');
    await until('it comes back', 90_000, () => isReady('capped') && uidOf('capped') !== capped);
    lab.agent.removeManifest('capped.yaml');
    await sleep(1000);
  });
});
