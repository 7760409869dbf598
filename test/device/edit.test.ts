/** What an edit does, row by row of the table in behaviour.md, on a real containerd: what it may touch, and that it touches nothing else. */
import assert from 'node:assert/strict';
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { stringify } from 'yaml';
import type { ToldPod } from '../../src/api/status.ts';
import { type Lab, startLab } from './lab.ts';
import { container, deaf, exit, type Fields, manifest, type PodText, pod, serve } from './manifest.ts';
import { freePort, sleep } from './process.ts';
import { agreed, footprint, gone, type Seen } from './truth.ts';

let lab: Lab;
before(async () => {
  lab = await startLab('edit');
});
after(() => lab.stop());

const drop = (of: PodText): void => lab.agent.drop(`${of.metadata.name}.yaml`, manifest(of));
const running = (p: ToldPod): boolean => p.status.phase === 'Running' && (p.status.containerStatuses ?? []).every((c) => c.ready);
const status = (told: ToldPod, name: string) =>
  [...(told.status.initContainerStatuses ?? []), ...(told.status.containerStatuses ?? [])].find((c) => c.name === name);
const revision = (p: ToldPod): string => p.metadata.annotations?.['podsched.dev/revision'] ?? '';

/** Drops the edit and waits until its revision is told (of a pod that runs, unless `check` says otherwise). */
async function edit(before: Seen, to: PodText, check: (p: ToldPod) => boolean = running): Promise<Seen> {
  drop(to);
  return await agreed(
    lab,
    to.metadata.name,
    (p, s) =>
      revision(p) !== revision(before.pod) && s.desired?.revision === revision(p) && s.running?.revision === revision(p) && check(p),
  );
}

const two = (name: string, spec: Fields = {}, metadata: Fields = {}) =>
  pod(name, { containers: [container('a'), container('b')], ...spec }, metadata);
const start = async (of: PodText): Promise<Seen> => {
  drop(of);
  return await agreed(lab, of.metadata.name, running);
};
const untouched = (now: Seen, before: Seen, ...names: string[]) => {
  assert.equal(now.pod.metadata.uid, before.pod.metadata.uid);
  assert.deepEqual(footprint(now.shown, ...names), footprint(before.shown, ...names));
  assert.equal(now.pod.status.startTime, before.pod.status.startTime);
};

describe('an edit touches as little as it can', { concurrency: 6 }, () => {
  test('labels, annotations, grace, deadline, tolerations, priority and the order of containers restart nothing, and are told and used', async () => {
    const name = 'calm';
    const first = await start(two(name, { terminationGracePeriodSeconds: 30, containers: [container('a', deaf), container('b')] }));
    const metadata = { labels: { app: 'calm' }, annotations: { 'example.org/note': 'second' } };
    const containers = [container('a', deaf), container('b')];
    const spec = { containers, terminationGracePeriodSeconds: 30 };
    const steps: [string, PodText][] = [
      ['a label', two(name, spec, { labels: metadata.labels })],
      ['an annotation', two(name, spec, metadata)],
      ['the grace', two(name, { ...spec, terminationGracePeriodSeconds: 3 }, metadata)],
      ['the deadline', two(name, { ...spec, terminationGracePeriodSeconds: 3, activeDeadlineSeconds: 3600 }, metadata)],
      ['tolerations', two(name, { ...spec, terminationGracePeriodSeconds: 3, tolerations: [{ operator: 'Exists' }] }, metadata)],
      ['the priority', two(name, { ...spec, terminationGracePeriodSeconds: 3, priority: 5 }, metadata)],
      ['the order', two(name, { ...spec, containers: [...containers].reverse(), terminationGracePeriodSeconds: 3 }, metadata)],
    ];
    let now = first;
    for (const [what, to] of steps) {
      now = await edit(now, to);
      untouched(now, first);
      assert.equal(now.shown.containers.length, 2, what);
      assert.equal(now.pod.metadata.labels?.app, 'calm', what);
    }
    assert.equal(now.pod.metadata.annotations?.['example.org/note'], 'second');

    // another spelling of the same object is no edit, and neither is another file name
    const again = {
      apiVersion: 'v1',
      kind: 'Pod',
      ...two(name, { ...spec, containers: [...containers].reverse(), terminationGracePeriodSeconds: 3 }, metadata),
    };
    lab.agent.drop('calm.yaml', `# a comment\n${stringify(again, { defaultStringType: 'QUOTE_DOUBLE' })}`);
    await sleep(500);
    renameSync(join(lab.agent.manifests, 'calm.yaml'), join(lab.agent.manifests, 'renamed.yml'));
    const renamed = await agreed(
      lab,
      name,
      (p, s) => p.metadata.annotations?.['podsched.dev/source'] === 'file:renamed.yml' && s.desired?.source === 'file:renamed.yml',
    );
    untouched(renamed, first);
    assert.equal(revision(renamed.pod), revision(now.pod));

    const removedAt = performance.now();
    lab.agent.removeManifest('renamed.yml');
    await gone(lab, name);
    const took = performance.now() - removedAt;
    assert.ok(took >= 2_900 && took < 29_000, `the new grace is the one that counts, not the old one of 30 s: ${took} ms`);
  });

  test('image, environment, command and limits of one container restart that one only, in the same pod', async () => {
    const name = 'one-of-two';
    const first = await start(two(name));
    let now = first;
    const changes: Fields[] = [
      { image: 'localhost/busybox:2' },
      { image: 'localhost/busybox:2', env: [{ name: 'GREETING', value: 'hello' }] },
      { image: 'localhost/busybox:2', command: ['sh', '-c', "trap 'exit 0' TERM; echo second; sleep 2147483647 & wait"] },
    ];
    for (const [i, change] of changes.entries()) {
      now = await edit(
        now,
        two(name, { containers: [container('a'), container('b', serve, change)] }),
        (p) => running(p) && status(p, 'b')?.restartCount === i + 1,
      );
      untouched(now, first, 'a');
      assert.equal(status(now.pod, 'b')?.image, 'localhost/busybox:2');
      assert.equal(status(now.pod, 'a')?.restartCount, 0);
      assert.deepEqual(
        now.shown.sandboxes.map((s) => s.id),
        first.shown.sandboxes.map((s) => s.id),
      );
    }
    const env = JSON.parse(
      await lab.bed.ctr('containers', 'info', now.shown.containers.find((c) => c.name === 'b' && c.state === 'running')?.id ?? ''),
    ).Spec.process;
    assert.ok(env.env.includes('IMAGE_VERSION=2'), 'it is the other image');
    assert.match(env.args.join(' '), /echo second/);
  });

  test('an edit ends the back-off of a crashing container', async () => {
    const name = 'mended';
    drop(two(name, { containers: [container('a'), container('b', exit(1))] }));
    const crashing = await agreed(
      lab,
      name,
      (p) => status(p, 'b')?.state.waiting?.reason === 'CrashLoopBackOff' && (status(p, 'b')?.restartCount ?? 0) >= 2,
      90_000,
    );
    const mended = await edit(crashing, two(name));
    const newest = (seen: Seen) => seen.shown.containers.find((c) => c.name === 'b');
    const waited = Number(((newest(mended)?.startedAt ?? 0n) - (newest(crashing)?.finishedAt ?? 0n)) / 1_000_000n);
    assert.ok(waited > 0 && waited < 20_000, `its back-off was 20 s, and it was started after ${waited} ms`);
    untouched(mended, crashing, 'a');
    assert.equal(status(mended.pod, 'b')?.restartCount, (status(crashing.pod, 'b')?.restartCount ?? 0) + 1);
  });

  const replacing: [string, (free: number) => [Fields, Fields]][] = [
    ['a container added', () => [{}, { containers: [container('a'), container('b'), container('c')] }]],
    ['a container removed', () => [{}, { containers: [container('a')] }]],
    ['a container renamed', () => [{}, { containers: [container('a'), container('c')] }]],
    ['an init container added', () => [{}, { initContainers: [container('first', exit(0))] }]],
    [
      'an init container changed',
      () => [{ initContainers: [container('first', exit(0))] }, { initContainers: [container('first', ['true'])] }],
    ],
    [
      'a host port',
      (free) => [{}, { containers: [container('a', serve, { ports: [{ containerPort: 80, hostPort: free }] }), container('b')] }],
    ],
    [
      'the first privileged container',
      () => [{}, { containers: [container('a', serve, { securityContext: { privileged: true } }), container('b')] }],
    ],
    ['restartPolicy', () => [{}, { restartPolicy: 'OnFailure' }]],
    ['hostNetwork', () => [{}, { hostNetwork: true }]],
    ['the QoS class', () => [{}, { containers: [container('a', serve, { resources: { requests: { memory: '8Mi' } } }), container('b')] }]],
    ['the host name', () => [{}, { hostname: 'other' }]],
  ];
  for (const [i, [what, specs]] of replacing.entries()) {
    test(`${what}: a new instance, after the old one is gone`, async () => {
      const name = `replaced-${i}`;
      const [from, to] = specs(await freePort());
      const first = await start(two(name, from));
      const now = await edit(first, two(name, to));
      assert.notEqual(now.pod.metadata.uid, first.pod.metadata.uid);
      const { initContainerStatuses = [], containerStatuses = [] } = now.pod.status;
      assert.deepEqual(
        [...initContainerStatuses, ...containerStatuses].filter((c) => c.restartCount !== 0),
        [],
        'counted anew',
      );
      const old = new Set(first.shown.containers.map((c) => c.id));
      const ends = await Promise.all(
        [...old].map((id) =>
          lab.bed.cri.containerStatus(id).then(
            (c) => c.state,
            () => 'gone',
          ),
        ),
      );
      assert.ok(
        ends.every((s) => s !== 'running'),
        'nothing of the old one runs',
      );
      lab.agent.removeManifest(`${name}.yaml`);
      await gone(lab, name);
    });
  }

  test('a finished one-shot pod does not run again for a label, and runs anew for a change of its work', async () => {
    const once = (command: readonly string[], metadata: Fields = {}) =>
      pod('once', { restartPolicy: 'Never', containers: [container('main', command)] }, metadata);
    drop(once(exit(0)));
    const done = await agreed(lab, 'once', (p, s) => p.status.phase === 'Succeeded' && s.phase === 'Completed');
    const labelled = await edit(done, once(exit(0), { labels: { app: 'once' } }), (p) => p.metadata.labels?.app === 'once');
    untouched(labelled, done);
    assert.equal(labelled.pod.status.phase, 'Succeeded');
    await sleep(2_000);
    untouched(await agreed(lab, 'once', (p) => p.status.phase === 'Succeeded'), done);
    const anew = await edit(labelled, once(exit(5)), (p) => p.status.phase === 'Failed');
    assert.notEqual(anew.pod.metadata.uid, done.pod.metadata.uid);
    assert.equal(status(anew.pod, 'main')?.state.terminated?.exitCode, 5);
  });

  test('an edit while an init container fails makes a new pod', async () => {
    const spec = { initContainers: [container('first', exit(1))] };
    drop(two('stuck', spec));
    const stuck = await agreed(lab, 'stuck', (p) => status(p, 'first')?.state.waiting?.reason === 'CrashLoopBackOff');
    const changed = { ...spec, containers: [container('a', serve, { env: [{ name: 'A', value: 'b' }] }), container('b')] };
    const now = await edit(stuck, two('stuck', changed), () => true);
    assert.notEqual(now.pod.metadata.uid, stuck.pod.metadata.uid);
  });
});

test('at no moment did two instances of a pod, or two containers of a name in a pod, live together', () => {
  assert.ok(lab.witness.containers.size > 40, `${lab.witness.containers.size} containers were seen`);
  assert.deepEqual(lab.witness.offences, []);
});
