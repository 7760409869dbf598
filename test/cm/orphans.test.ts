/** Cgroups of pods that nobody knows any more. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import { type Bed, bed, podWith } from './cgroupBed.ts';

const fresh = { runs: false };
const none: ReadonlySet<PodUid> = new Set();

const round = (b: Bed, known: ReadonlySet<PodUid> = none): Promise<void> => b.manager.retain(known);

const here = (b: Bed, uid: string): boolean => existsSync(join(b.root, 'kubepods/besteffort', `pod${uid}`));

/** As another kubelet, or a hand, would make it. */
const foreign = (b: Bed, uid: string, pids: readonly number[]): void => {
  b.fs.makeGroup(join(b.root, 'kubepods/besteffort', `pod${uid}`));
  b.fs.setProcs(join(b.root, 'kubepods/besteffort', `pod${uid}`), pids);
};

test('the cgroup of a pod that is gone is ended and removed, others stay', async () => {
  const b = bed();
  await b.manager.load();
  const [gone, stays] = [podWith('gone'), podWith('stays')];
  await b.manager.ensurePod(gone, fresh);
  await b.manager.ensurePod(stays, fresh);
  b.fs.setProcs(join(b.root, 'kubepods/besteffort', `pod${gone.uid}`), [77]);
  const next = bed({ on: b });
  await next.manager.load();
  await round(next, new Set([stays.uid]));
  assert.equal(here(b, gone.uid), false);
  assert.equal(here(b, stays.uid), true);
});

test('a pod that comes while the round runs is no orphan', async () => {
  const b = bed();
  await b.manager.load();
  const pod = podWith('new');
  const early = round(b);
  await b.manager.ensurePod(pod, fresh);
  await round(b, new Set([pod.uid]));
  await early; // while it runs, another ends at once
  assert.equal(here(b, pod.uid), true);
});

test('what somebody else made is removed only when it was empty for a minute, and nothing in it is killed', async () => {
  const b = bed();
  await b.manager.load();
  await b.manager.runtimeUp();
  foreign(b, 'aa', [4711]);
  foreign(b, 'bb', []);
  await round(b);
  assert.equal(here(b, 'aa') && here(b, 'bb'), true);
  await b.clock.advance(2_000);
  await round(b);
  assert.equal(here(b, 'bb'), true, 'rounds may follow each other in seconds: its owner may be about to start something in it');
  await b.clock.advance(60_000);
  await round(b);
  assert.equal(here(b, 'aa'), true);
  assert.equal(here(b, 'bb'), false);
  assert.deepEqual(b.fs.procs(join(b.root, 'kubepods/besteffort/podaa')), [4711]);
});

test('what cannot go yet goes in a later round', async () => {
  const b = bed();
  await b.manager.load();
  const pod = podWith('gone');
  await b.manager.ensurePod(pod, fresh);
  b.fs.fail.set(`rmdir kubepods/besteffort/pod${pod.uid}`, ['EPERM']);
  await round(b);
  assert.equal(here(b, pod.uid), true);
  await round(b);
  assert.equal(here(b, pod.uid), false);
});

for (const driver of ['cgroupfs', 'systemd'] as const) {
  test(`whoever moves into a foreign cgroup in the moment of its removal lives on (${driver})`, async () => {
    const b = bed({ driver });
    await b.manager.load();
    await b.manager.runtimeUp();
    const [parent, dir] =
      driver === 'cgroupfs'
        ? ['kubepods/besteffort', 'podff']
        : ['kubepods.slice/kubepods-besteffort.slice', 'kubepods-besteffort-podff.slice'];
    const path = join(b.root, parent, dir);
    b.fs.makeGroup(path);
    await round(b);
    await b.clock.advance(60_000);
    // after the look that found it empty
    const rmdir = b.fs.rmdir.bind(b.fs);
    b.fs.rmdir = async (gone) => {
      if (gone === path) b.fs.setProcs(path, [4711]);
      return rmdir(gone);
    };
    await round(b);
    assert.deepEqual(b.fs.procs(path), [4711]);
    assert.deepEqual(
      b.fs.calls.filter((c) => c.includes('cgroup.kill')),
      [],
    );
    assert.deepEqual(
      b.asked.filter((a) => a === `StopUnit ${dir}`),
      [],
    );
  });
}
