/** Pull before stop, step by step on the fake clock. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EditVerdict, PodEdit } from '../../src/api/edit.ts';
import { type KeyText, keyText } from '../../src/api/objects.ts';
import type { EnsureResult } from '../../src/container/ensureResult.ts';
import type { Standing } from '../../src/updates/needed.ts';
import { Prefetch } from '../../src/updates/prefetch.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { edit, podOf } from './builders.ts';

const app = (image: string, policy = 'IfNotPresent') => podOf([`{name: app, image: "${image}", imagePullPolicy: ${policy}}`]);

function rig() {
  const clock = new FakeClock();
  const here = new Set<string>(['i:1']);
  const pulls: { readonly image: string; readonly signal: AbortSignal; readonly end: (result: EnsureResult | Error) => void }[] = [];
  const r = {
    clock,
    here,
    pulls,
    standing: 'runs' as Standing,
    /** What looking at images does: answers, fails, or hangs. */
    look: async (image: string): Promise<boolean> => here.has(image),
    again: 0,
    prefetch: undefined as unknown as Prefetch,
    /** The verdict, after as many milliseconds as it takes. */
    async judge(e: PodEdit, ms = 0): Promise<EditVerdict | undefined | 'late'> {
      let answer: EditVerdict | undefined | 'late' = 'late';
      void r.prefetch.judge(e).then((v) => {
        answer = v;
      });
      await clock.advance(ms);
      return answer;
    },
  };
  r.prefetch = new Prefetch({
    clock,
    imageHere: (image) => r.look(image),
    ensureImage: (_, { image }, signal) =>
      new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
        pulls.push({ image, signal, end: (result) => (result instanceof Error ? reject(result) : resolve(result)) });
      }),
    standing: () => r.standing,
    judgeAgain: () => r.again++,
  });
  return r;
}

const ok: EnsureResult = { ok: true, image: { id: 'sha256:x', username: '' } };
const [one, two] = [app('i:1'), app('i:2')];
const failure = (waitMs?: number): EnsureResult => ({
  ok: false,
  reason: 'ErrImagePull',
  message: 'no such tag',
  ...(waitMs && { waitMs }),
});

test('all is here: nothing waits and nothing is pulled', async () => {
  const r = rig();
  r.here.add('i:2');
  assert.equal(await r.judge(edit(one, two)), undefined);
  assert.equal(r.pulls.length, 0);
});

test('an image is pulled once, however often it is asked for, and then the edit is judged again and goes on', async () => {
  const r = rig();
  const waits = await r.judge(edit(one, two));
  assert.deepEqual(waits, {
    act: 'block',
    reason: 'PullingImage',
    message: `image "i:2" of app is being pulled for revision ${two.revision}`,
  });
  assert.deepEqual(await r.judge(edit(one, two)), waits);
  assert.deepEqual([r.pulls.length, r.again], [1, 0]);
  r.pulls[0]?.end(ok);
  await r.clock.advance(0);
  assert.equal(r.again, 1);
  assert.equal(await r.judge(edit(one, two)), undefined);
});

test('a pull that fails is told in its own words, tried again when its back-off is over, and not sooner', async () => {
  const r = rig();
  await r.judge(edit(one, two));
  r.pulls[0]?.end(failure(10_000));
  await r.clock.advance(0);
  assert.equal(r.again, 1);
  const failed = { act: 'block', reason: 'ErrImagePull', message: 'no such tag' };
  assert.deepEqual(await r.judge(edit(one, two)), failed);
  await r.clock.advance(9_900);
  assert.equal(r.pulls.length, 1);
  await r.clock.advance(200);
  assert.equal(r.pulls.length, 2);
  assert.deepEqual(await r.judge(edit(one, two)), failed, 'while it is tried again, what it said last is told');
  r.pulls[1]?.end(ok);
  await r.clock.advance(0);
  assert.equal(await r.judge(edit(one, two)), undefined);
});

test('what no pull can bring is looked for once a minute, and asked of nobody when it is here', async () => {
  const r = rig();
  await r.judge(edit(one, app('i:2', 'Never')));
  r.pulls[0]?.end({ ok: false, reason: 'ErrImageNeverPull', message: 'not present' });
  await r.clock.advance(59_000);
  assert.equal(r.pulls.length, 1);
  r.here.add('i:2');
  await r.clock.advance(2_000);
  assert.equal(r.pulls.length, 1);
  assert.equal(await r.judge(edit(one, app('i:2', 'Never'))), undefined);
});

test('another revision, a verdict that nobody waits for, and a stop end the pull', async () => {
  for (const how of ['revision', 'forget', 'retain', 'stop'] as const) {
    const r = rig();
    await r.judge(edit(one, two));
    if (how === 'revision') await r.judge(edit(one, app('i:3')));
    else if (how === 'forget') r.prefetch.forget(two.key);
    else if (how === 'retain') r.prefetch.retain(new Set());
    else r.prefetch.stop();
    assert.equal(r.pulls[0]?.signal.aborted, true, how);
    await r.clock.advance(600_000);
    assert.deepEqual([r.again, r.pulls.length], [0, how === 'revision' ? 2 : 1], how);
  }
});

test('an instance that is over, or is down and lacks an image of its own, waits for nothing; one that can start again does', async () => {
  const r = rig();
  r.standing = 'over';
  assert.equal(await r.judge(edit(one, two)), undefined);
  r.standing = 'down';
  assert.equal(((await r.judge(edit(one, two))) as EditVerdict).act, 'block');
  r.here.delete('i:1');
  assert.equal(await r.judge(edit(one, two)), undefined);
  assert.equal(r.pulls[0]?.signal.aborted, true, 'its own step pulls from now on');
});

test('while it waits, another standing of the instance is looked at; the same one is not', async () => {
  const r = rig();
  await r.judge(edit(one, two));
  r.prefetch.look(one);
  assert.equal(r.again, 0);
  r.standing = 'over';
  r.prefetch.look(one);
  assert.equal(r.again, 1);
});

test('Always: a registry that answers within a second is waited for, one that does not is not', async () => {
  const quick = rig();
  const always = app('i:1', 'Always');
  const verdict = quick.judge(edit(two, always), 500);
  await quick.clock.advance(0);
  quick.pulls[0]?.end(ok);
  await verdict;
  assert.equal(await quick.judge(edit(two, always)), undefined);
  const slow = rig();
  assert.equal(((await slow.judge(edit(two, always), 1_500)) as EditVerdict).act, 'block');
});

test('a runtime that fails or hangs blocks the edit, holds nobody up for more than a second, and is asked again', async () => {
  for (const how of ['fails', 'hangs'] as const) {
    const r = rig();
    r.here.add('i:2');
    const { look } = r;
    r.look = () => (how === 'fails' ? Promise.reject(new Error('unavailable')) : new Promise(() => {}));
    const verdict = await r.judge(edit(one, two), 1_100);
    assert.match(JSON.stringify(verdict), how === 'fails' ? /unavailable/ : /does not answer/);
    r.look = look;
    await r.clock.advance(6_000);
    assert.ok(r.again > 0, how);
    assert.equal(await r.judge(edit(one, two)), undefined, how);
    assert.equal(r.pulls.length, 0);
  }
});

test('several images come one after the other, and the first that fails is told', async () => {
  const r = rig();
  const both = podOf(['{name: a, image: "i:2"}', '{name: b, image: "i:3"}']);
  const old = podOf(['{name: a, image: "i:1"}', '{name: b, image: "i:1"}']);
  await r.judge(edit(old, both));
  assert.deepEqual(
    r.pulls.map((p) => p.image),
    ['i:2'],
  );
  r.pulls[0]?.end(ok);
  await r.clock.advance(0);
  assert.match(JSON.stringify(await r.judge(edit(old, both))), /i:3/);
  r.pulls[1]?.end(failure(5_000));
  await r.clock.advance(0);
  assert.match(JSON.stringify(await r.judge(edit(old, both))), /ErrImagePull/);
});

test('a pull that ends by somebody else’s time-out is tried again', async () => {
  const r = rig();
  await r.judge(edit(one, two));
  r.pulls[0]?.end(Object.assign(new Error('too late'), { name: 'TimeoutError' }));
  await r.clock.advance(60_000);
  assert.equal(r.pulls.length, 2);
});

const [reg, other] = ['reg', 'other'].map((name) => keyText({ kind: 'Secret', namespace: 'default', name })) as [KeyText, KeyText];

test('a pull secret that comes, also during a pull that will fail without it, is used at once', async () => {
  const next = podOf(['{name: app, image: "i:2"}'], { lines: ['imagePullSecrets: [{name: reg}]'] });
  for (const when of ['during', 'after'] as const) {
    const r = rig();
    await r.judge(edit(one, next));
    if (when === 'during') r.prefetch.objectsChanged([reg]);
    r.pulls[0]?.end(failure(300_000));
    await r.clock.advance(0);
    if (when === 'after') r.prefetch.objectsChanged([other, reg]);
    await r.clock.advance(1_500);
    assert.equal(r.pulls.length, 2, when);
    r.prefetch.objectsChanged([other]);
    r.pulls[1]?.end(failure(300_000));
    await r.clock.advance(200_000);
    assert.equal(r.pulls.length, 2, when);
  }
});

test('after the stop nothing is pulled, for a step that was under way neither', async () => {
  const r = rig();
  r.prefetch.stop();
  await r.judge(edit(one, two), 5_000);
  await r.clock.advance(600_000);
  assert.deepEqual([r.pulls.length, r.clock.sleeping], [0, 0]);
});
