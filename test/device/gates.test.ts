/** Field case G11 and L4 on a real containerd: a disk that is mounted late, one that is away again, and pods that wait for one another. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Lab, startLab } from './lab.ts';
import { container, type Fields, manifest, pod } from './manifest.ts';
import { sleep, until } from './process.ts';
import { eventsOf } from './story.ts';
import { toldPod, toldSync } from './truth.ts';

let lab: Lab;
let dir: string;
before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'podsched-gates-'));
  lab = await startLab('gates');
});
/** The folder where a disk is to be mounted. */
function mountPoint(name: string): string {
  mkdirSync(join(dir, name));
  return join(dir, name);
}
const isMounted = (disk: string): boolean => readFileSync('/proc/self/mountinfo', 'utf8').includes(` ${disk} `);
const attach = (disk: string): unknown => execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', disk]);
after(async () => {
  await lab?.stop();
  for (const disk of readdirSync(dir).map((name) => join(dir, name))) while (isMounted(disk)) execFileSync('umount', ['-l', disk]);
  rmSync(dir, { recursive: true, force: true });
});

const waits = (waitFor: string, timeout?: string, labels: Fields = {}): Fields => ({
  labels,
  annotations: { 'podsched.dev/wait-for': waitFor, ...(timeout !== undefined && { 'podsched.dev/wait-timeout': timeout }) },
});
const writer = (disk: string): Fields => ({
  volumes: [{ name: 'data', hostPath: { path: join(disk, 'data'), type: 'DirectoryOrCreate' } }],
  containers: [
    container('main', ['sh', '-c', "trap 'exit 0' TERM; while true; do date >>/data/log; sleep 1 & wait $!; done"], {
      volumeMounts: [{ name: 'data', mountPath: '/data' }],
    }),
  ],
});
const drop = (name: string, spec: Fields, metadata: Fields): void => lab.agent.drop(`${name}.yaml`, manifest(pod(name, spec, metadata)));
const reason = (name: string): string | undefined => toldSync(lab, name)?.reason;
const isReady = (name: string): boolean => toldPod(lab, name)?.status.containerStatuses?.every((c) => c.ready) === true;
const sandboxesOf = async (name: string): Promise<number> => (await lab.bed.cri.sandboxes()).filter((s) => s.name === name).length;

// each is about pods of its own, and most of its time is waiting
describe('gates', { concurrency: true }, () => {
  test('G11: a pod that waits for a disk is started within seconds of its mount, and the folder below was never written', async () => {
    const disk = mountPoint('late');
    drop('store', writer(disk), waits(`mount:${disk}`));
    await until('it is told', 60_000, () => reason('store') === 'WaitingForMount');
    assert.equal(toldSync(lab, 'store')?.message, `${disk} is not a mount point`);
    await sleep(7_000); // it looks again each 5 s
    assert.deepEqual([readdirSync(disk), await sandboxesOf('store'), toldPod(lab, 'store')?.status.phase], [[], 0, 'Pending']);
    attach(disk);
    await until('it runs', 60_000, () => isReady('store'));
    await until('it writes to the disk', 45_000, () => existsSync(join(disk, 'data/log')));
    await until('it is told well', 45_000, () => reason('store') === 'Ready');
    const told = (await eventsOf(lab.agent, 'store')).filter((e) => e.includes('WaitingForMount'));
    assert.equal(told.length, 1, 'told once');
  });

  test('G11: the disk goes while the pod runs: it goes on, its next container waits, and nothing lands on the card', async () => {
    const disk = mountPoint('lost');
    attach(disk);
    drop('keeper', writer(disk), waits(`mount:${disk}`));
    await until('it runs', 60_000, () => isReady('keeper'));
    const main = async () =>
      (await lab.bed.cri.containers()).find((c) => c.state === 'running' && c.labels['io.kubernetes.pod.name'] === 'keeper');
    const first = (await main())?.id;
    execFileSync('umount', ['-l', disk]);
    // an edit makes the agent look at the pod
    drop('keeper', writer(disk), waits(`mount:${disk}`, undefined, { seen: 'true' }));
    await until('the edit is told', 60_000, () => toldPod(lab, 'keeper')?.metadata.labels?.seen === 'true');
    await sleep(1_000);
    assert.ok(isReady('keeper'), 'a gate that closes later stops nothing');
    assert.equal((await main())?.id, first);
    execFileSync('ctr', ['-a', lab.bed.socket, '-n', 'k8s.io', 'tasks', 'kill', '-s', 'SIGKILL', first ?? 'none']);
    await until('it waits', 60_000, () => reason('keeper') === 'WaitingForMount');
    await sleep(6_000); // it looks again each 5 s
    assert.deepEqual(readdirSync(disk), [], 'the folder below');
    attach(disk);
    await until('it runs again', 60_000, () => isReady('keeper'));
    assert.deepEqual(readdirSync(disk), ['data']);
  });

  test('L4: a pod that waits for another starts at the moment that one is ready, and its later restart touches nothing', async () => {
    // ready when it was seen that it is not
    const sign = mountPoint('sign');
    const slow = { exec: { command: ['test', '-e', '/sign/ready'] }, periodSeconds: 1 };
    const main = container('main', undefined, { readinessProbe: slow, volumeMounts: [{ name: 'sign', mountPath: '/sign' }] });
    drop('after', {}, waits('pod/default/before=Ready'));
    await until('it waits', 60_000, () => toldSync(lab, 'after')?.message === 'pod default/before does not exist');
    drop('before', { volumes: [{ name: 'sign', hostPath: { path: sign } }], containers: [main] }, {});
    await until('it is not ready', 60_000, () => toldSync(lab, 'after')?.message === 'pod default/before is not ready');
    writeFileSync(join(sign, 'ready'), '');
    await until('the first is ready', 60_000, () => isReady('before'));
    await until('the second follows', 60_000, () => isReady('after'));
    const { containerID } = toldPod(lab, 'after')?.status.containerStatuses?.[0] ?? {};
    lab.agent.removeManifest('before.yaml');
    await until('the first is gone', 60_000, () => toldPod(lab, 'before') === undefined);
    await sleep(2_000);
    assert.equal(toldPod(lab, 'after')?.status.containerStatuses?.[0]?.containerID, containerID);
  });

  test('L4: pods that wait for one another are refused a start, with the way; cut by an edit they start', async () => {
    drop('a', {}, waits('pod/default/b=Ready'));
    drop('b', {}, waits('pod/default/a=Ready', '1s'));
    for (const [name, way] of [
      ['a', 'default/a waits for default/b waits for default/a'],
      ['b', 'default/b waits for default/a waits for default/b'],
    ] as const) {
      await until(`${name} is told`, 60_000, () => reason(name) === 'WaitCycle');
      assert.equal(toldSync(lab, name)?.message, `${way}: none of them can ever start`);
    }
    await sleep(2_000);
    assert.deepEqual([await sandboxesOf('a'), await sandboxesOf('b')], [0, 0]);
    drop('b', {}, {});
    await until('both run', 60_000, () => isReady('a') && isReady('b'));
  });

  test('after its time-out a pod starts without what it waits for, and says so', async () => {
    drop('late', {}, waits('pod/default/none=Ready', '8s'));
    await until('it waits', 60_000, () => reason('late') === 'WaitingForPod');
    await until('it runs', 60_000, () => isReady('late'));
    const events = await eventsOf(lab.agent, 'late');
    assert.ok(
      events.some((e) => /WaitTimeout.*started after waiting 8s, although pod default\/none does not exist/.test(e)),
      events.join('\n'),
    );
  });

  test('a gate that nobody knows refuses the pod by its path, with the nearest', async () => {
    drop('wrong', {}, waits('mounts:/mnt/ssd'));
    await until('it is refused', 60_000, () => toldSync(lab, 'wrong')?.phase === 'Refused');
    const [problem] = toldSync(lab, 'wrong')?.sources[0]?.problems ?? [];
    assert.deepEqual([problem?.path, problem?.nearest], ['metadata.annotations[podsched.dev/wait-for]', 'mount:/mnt/ssd']);
  });
});
