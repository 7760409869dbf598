/** The lives of pods on a real containerd: from the manifest in the folder to the last word about them. At every step what is told is what is. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { ToldPod } from '../../src/api/status.ts';
import { type Lab, startLab } from './lab.ts';
import { container, deaf, exit, manifest, type PodText, pod, serve } from './manifest.ts';
import { sleep, until } from './process.ts';
import { agreed, footprint, gone, toldPod } from './truth.ts';
import { retainedNow } from './watcher.ts';

let lab: Lab;
/** Files by which the test tells a container that it has seen enough. */
let signs: string;
before(async () => {
  signs = mkdtempSync(join(tmpdir(), 'podsched-signs-'));
  lab = await startLab('life');
});
after(async () => {
  await lab?.stop();
  rmSync(signs, { recursive: true, force: true });
});
const volume = () => ({ name: 'signs', hostPath: { path: signs } });
const signed = { volumeMounts: [{ name: 'signs', mountPath: '/signs' }] };
const sign = (name: string): void => writeFileSync(join(signs, name), '');

const drop = (of: PodText): string => {
  lab.agent.drop(`${of.metadata.name}.yaml`, manifest(of));
  return of.metadata.name;
};
const status = (told: ReturnType<typeof toldPod>, name: string) =>
  [...(told?.status.initContainerStatuses ?? []), ...(told?.status.containerStatuses ?? [])].find((c) => c.name === name);
/** The runtime's own record, whose times are exact. */
const times = (seen: Awaited<ReturnType<typeof agreed>>, name: string) => {
  const record = seen.shown.containers.find((c) => c.name === name);
  assert.ok(record, `${name} is shown`);
  return record;
};

describe('pods live as their manifests say', { concurrency: 6 }, () => {
  test('a dropped pod with two containers is told Running, and gone when its file goes', async () => {
    const name = drop(pod('pair', { containers: [container('web'), container('side')] }));
    const { pod: told, sync, shown } = await agreed(lab, name, (p) => p.status.phase === 'Running');
    assert.equal(sync.phase, 'Running');
    assert.equal(sync.reason, 'Ready');
    assert.equal(sync.running?.uid, told.metadata.uid);
    assert.equal(shown.containers.length, 2);
    assert.match(told.status.podIP ?? '', /^10\./);
    assert.equal(told.metadata.annotations?.['podsched.dev/source'], 'file:pair.yaml');
    lab.agent.removeManifest('pair.yaml');
    await lab.watcher.until(
      lab.agent.topic(`pods/default/${name}`),
      (p) => p === undefined || 'deletionTimestamp' in (p as { metadata: object }).metadata,
    );
    await gone(lab, name);
    const endings = lab.watcher.heard.filter((h) => h.topic.endsWith(`/pods/default/${name}`) && h.text.includes('deletionTimestamp'));
    assert.ok(endings.length > 0, 'that it was ending was told');
  });

  test('a removed pod that does not hear TERM has its grace, and is killed after it', async () => {
    const name = drop(pod('deaf', { terminationGracePeriodSeconds: 3, containers: [container('main', deaf)] }));
    const { shown } = await agreed(lab, name, (p) => p.status.phase === 'Running');
    const id = shown.containers[0]?.id ?? '';
    const removedAt = Date.now();
    lab.agent.removeManifest('deaf.yaml');
    let end: { exitCode: number; finishedAt: bigint } | undefined;
    await until('it was killed', 60_000, async () => {
      const now = await lab.bed.cri.containerStatus(id).catch(() => undefined);
      if (now?.state === 'exited') end = now;
      return end !== undefined || now === undefined;
    });
    await gone(lab, name);
    if (end === undefined) return; // it was collected between two looks
    assert.equal(end.exitCode, 137);
    assert.ok(Number(end.finishedAt / 1_000_000n) - removedAt >= 2_900, 'the grace is its own');
  });

  test('removed and added again within its grace, a pod comes back as a new instance after the old one', async () => {
    const name = drop(pod('again', { containers: [container('main', deaf)] }));
    const first = await agreed(lab, name, (p) => p.status.phase === 'Running');
    lab.agent.removeManifest('again.yaml');
    await lab.watcher.untilAll('it ends', () => toldPod(lab, name)?.metadata.deletionTimestamp !== undefined);
    drop(pod('again'));
    const second = await agreed(lab, name, (p) => p.metadata.uid !== first.pod.metadata.uid && p.status.phase === 'Running');
    assert.equal(status(second.pod, 'main')?.restartCount, 0);
  });

  test('a crashing container backs off for 10 s and then for 20 s, and every crash is counted', async () => {
    const name = drop(pod('crash', { containers: [container('main', exit(7)), container('calm')] }));
    const one = await agreed(lab, name, (p, s) => status(p, 'main')?.state.waiting?.reason === s.reason && s.reason === 'CrashLoopBackOff');
    const calm = footprint(one.shown, 'calm');
    assert.equal(status(one.pod, 'main')?.lastState.terminated?.exitCode, 7);
    assert.equal(one.pod.status.phase, 'Running');
    const three = await agreed(lab, name, (p) => (status(p, 'main')?.restartCount ?? 0) >= 3, 120_000);
    assert.deepEqual(footprint(three.shown, 'calm'), calm);
    const created = [...lab.witness.containers.values()]
      .filter((c) => c.labels['io.kubernetes.pod.name'] === name && c.name === 'main')
      .sort((a, b) => a.attempt - b.attempt);
    assert.deepEqual(
      created.slice(0, 4).map((c) => c.attempt),
      [0, 1, 2, 3],
    );
    const waits = created.slice(1, 4).map((c, i) => Number((c.createdAt - (created[i]?.createdAt ?? 0n)) / 1_000_000n));
    const [first = 0, second = 0, third = 0] = waits;
    // each is less than the wait after it
    assert.ok(first < 10_000, `the first restart is at once: ${waits}`);
    assert.ok(second >= 10_000 && second < 20_000, `then 10 s: ${waits}`);
    assert.ok(third >= 20_000 && third < 40_000, `then 20 s: ${waits}`);
    lab.agent.removeManifest('crash.yaml');
    await gone(lab, name);
  });

  for (const [code, phase, word] of [
    [0, 'Succeeded', 'Completed'],
    [3, 'Failed', 'Failed'],
  ] as const) {
    test(`a one-shot pod that ends with ${code} is ${phase}, once`, async () => {
      const name = drop(pod(`once-${code}`, { restartPolicy: 'Never', containers: [container('main', exit(code, 1))] }));
      const { pod: told, sync } = await agreed(lab, name, (p, s) => p.status.phase === phase && s.phase === word);
      assert.equal(status(told, 'main')?.state.terminated?.exitCode, code);
      assert.equal(sync.phase, word);
      await sleep(3_000);
      // its sandbox is stopped
      const over = (p: ToldPod) => p.status.conditions?.find((c) => c.type === 'PodReadyToStartContainers')?.status === 'False';
      const { shown } = await agreed(lab, name, (p) => p.status.phase === phase && over(p));
      assert.deepEqual(
        shown.containers.map((c) => c.attempt),
        [0],
      );
      assert.ok(shown.sandboxes.every((s) => !s.ready));
      lab.agent.removeManifest(`${name}.yaml`);
      await gone(lab, name);
    });
  }

  test('an OnFailure pod is started again until it ends with 0', async () => {
    const main = container('main', ['sh', '-c', 'sleep 1; [ -e /signs/well ]'], signed);
    const name = drop(pod('tries', { restartPolicy: 'OnFailure', volumes: [volume()], containers: [main] }));
    const failed = await agreed(lab, name, (p) => (status(p, 'main')?.lastState.terminated?.exitCode ?? 0) === 1);
    assert.notEqual(failed.pod.status.phase, 'Failed');
    sign('well');
    const { pod: told, sync } = await agreed(lab, name, (p, s) => p.status.phase === 'Succeeded' && s.phase === 'Completed', 120_000);
    assert.equal(sync.reason, 'Succeeded');
    assert.ok((status(told, 'main')?.restartCount ?? 0) >= 1);
  });

  test('init containers run one after the other before the containers, and a sidecar beside them from its turn on', async () => {
    const initContainers = [
      container('one', ['sh', '-c', 'until [ -e /signs/seen ]; do sleep 0.1; done'], signed),
      container('relay', serve, { restartPolicy: 'Always' }),
      container('two', exit(0, 1)),
    ];
    const name = drop(pod('order', { volumes: [volume()], initContainers }));
    const early = await agreed(lab, name, (p) => status(p, 'one')?.state.running !== undefined);
    sign('seen');
    assert.equal(early.pod.status.phase, 'Pending');
    assert.equal(status(early.pod, 'main')?.state.waiting?.reason, 'PodInitializing');
    const seen = await agreed(lab, name, (p) => p.status.phase === 'Running' && status(p, 'main')?.ready === true);
    const [one, relay, two, main] = ['one', 'relay', 'two', 'main'].map((n) => times(seen, n));
    assert.ok(one && relay && two && main);
    assert.ok(one.finishedAt <= relay.startedAt && relay.startedAt <= two.startedAt && two.finishedAt <= main.startedAt, 'in their order');
    assert.equal(relay.state, 'running');
    await lab.bed.ctr('tasks', 'kill', '--signal', 'SIGKILL', relay.id);
    const again = await agreed(lab, name, (p) => status(p, 'relay')?.restartCount === 1 && status(p, 'relay')?.ready === true);
    assert.deepEqual(footprint(again.shown, 'main'), footprint(seen.shown, 'main'));
  });

  test('a failing init container keeps the containers from starting, and a pod that never restarts fails with it', async () => {
    const spec = (restartPolicy: string) => ({ restartPolicy, initContainers: [container('prepare', exit(4))] });
    const [always, never] = [drop(pod('init-always', spec('Always'))), drop(pod('init-never', spec('Never')))];
    const failed = await agreed(lab, never, (p, s) => p.status.phase === 'Failed' && s.phase === 'Failed');
    assert.deepEqual(
      failed.shown.containers.map((c) => c.name),
      ['prepare'],
    );
    const waiting = await agreed(
      lab,
      always,
      (p, s) => status(p, 'prepare')?.state.waiting?.reason === s.reason && s.reason === 'CrashLoopBackOff',
    );
    assert.equal(waiting.pod.status.phase, 'Pending');
    assert.equal(waiting.sync.phase, 'Waiting');
    assert.match(waiting.sync.message, /prepare.*exit code 4/);
    assert.ok(waiting.shown.containers.every((c) => c.name === 'prepare'));
  });

  test('a pod that is past activeDeadlineSeconds is ended and told Failed DeadlineExceeded', async () => {
    const name = drop(pod('deadline', { activeDeadlineSeconds: 15 }));
    const running = await agreed(lab, name, (p) => p.status.phase === 'Running');
    const { pod: told, sync, shown } = await agreed(lab, name, (p, s) => p.status.phase === 'Failed' && s.phase === 'Failed');
    assert.equal(told.status.reason, 'DeadlineExceeded');
    assert.equal(sync.reason, 'DeadlineExceeded');
    assert.equal(shown.tasks.has(running.shown.containers[0]?.id ?? ''), false);
    const lived = Number(times({ pod: told, sync, shown }, 'main').finishedAt / 1_000_000n) - Date.parse(told.status.startTime ?? '');
    assert.ok(lived >= 14_000 && lived < 45_000, `it lived ${lived} ms`);
  });

  test('an image that is nowhere is told ErrImagePull and then ImagePullBackOff, and the other container runs', async () => {
    const missing = { name: 'main', image: 'localhost:1/not/here:1' };
    const name = drop(pod('no-image', { containers: [missing, container('fine')] }));
    const { pod: told, sync } = await agreed(
      lab,
      name,
      (p, s) => s.reason === 'ImagePullBackOff' && status(p, 'main')?.state.waiting?.reason === s.reason,
      90_000,
    );
    assert.equal(told.status.phase, 'Pending');
    assert.equal(sync.reason, 'ImagePullBackOff');
    assert.ok((sync.nextRetrySeconds ?? 0) > 0, 'when it is tried again');
    // a status that changes fast is told every 5 s: what came between stands in the events at least
    const heard = lab.watcher.heard.filter((h) => h.text.includes(`"${name}"`) && h.text.includes('ErrImagePull'));
    assert.ok(heard.length > 0, 'the failure itself was told');
    assert.ok(status(told, 'fine')?.state.running);
  });

  test('a container that cannot be started is told with the reason of the runtime', async () => {
    const name = drop(pod('no-command', { containers: [container('main', ['/not/there'])] }));
    const { pod: told, sync } = await agreed(
      lab,
      name,
      (p, s) => s.reason !== 'ContainerCreating' && status(p, 'main')?.lastState.terminated !== undefined,
    );
    assert.match(JSON.stringify([told.status, sync]), /not\/there/);
  });
});

test('the broker keeps what was told last, and the witness saw nothing that must not be', async () => {
  // pods that try again and again are told anew meanwhile: at some moment all is the same
  const differing = async (): Promise<unknown[]> => {
    const kept = await retainedNow(lab.broker.url);
    const told = [...lab.watcher.values].filter(([topic]) => !/\/(online|metrics|summary)$/.test(topic));
    return told
      .filter(([topic, value]) => !isDeepStrictEqual(kept.get(topic), value))
      .map(([topic, value]) => [topic, value, kept.get(topic)]);
  };
  let left: unknown[] = [];
  await until('the broker keeps what was told', 45_000, async () => {
    left = await differing();
    return left.length === 0;
  }).catch(() => assert.deepEqual(left, []));
  assert.deepEqual(lab.witness.offences, []);
});
