/** Field cases C1 and C2 at the worker: each edit, removal and re-adding arrives as config/ sends it, with a UID of its own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DesiredPod } from '../../src/api/desired.ts';
import { desiredPod } from './desiredPod.ts';
import { World } from './world.ts';

const count = (w: World, method: string) => w.runtime.calls.filter((c) => c.method === method).length;

for (const seconds of [0, 0.1, 1, 5, 40]) {
  for (const ignoresTerm of [false, true]) {
    test(`C1: removed and added again after ${seconds} s, ${ignoresTerm ? 'TERM ignored' : 'TERM heeded'}: runs, once, never twice at a time`, async () => {
      const w = new World();
      w.runtime.onStart(() => ({ ignoresTerm }));
      await w.run();
      const first = desiredPod('web', 'u1');
      w.add(first);
      await w.clock.advance(1000);
      w.remove(first);
      await w.clock.advance(seconds * 1000);
      w.add(desiredPod('web', 'u2'));
      await w.clock.advance(45_000);
      assert.deepEqual(w.runtime.running(), ['web/app']);
      assert.equal(w.runtime.find('web', 'app')?.podUid, 'u2');
      assert.equal(count(w, 'runSandbox'), 2);
      assert.deepEqual(w.runtime.violations, []);
      await w.end();
    });
  }
}

test('C1: five toggles in two seconds end with the newest instance running, and one start beside the first', async () => {
  const w = new World();
  w.runtime.onStart(() => ({ ignoresTerm: true }));
  await w.run();
  let current = desiredPod('web', 'u1');
  w.add(current);
  await w.clock.advance(1000);
  for (let i = 2; i <= 6; i++) {
    w.remove(current);
    await w.clock.advance(200);
    current = desiredPod('web', `u${i}`);
    w.add(current);
    await w.clock.advance(200);
  }
  await w.clock.advance(35_000);
  assert.deepEqual(w.runtime.running(), ['web/app']);
  assert.equal(w.runtime.find('web', 'app')?.podUid, 'u6');
  assert.equal(count(w, 'runSandbox'), 2);
  assert.equal(w.took().filter((l) => l.startsWith('kill')).length, 1);
  assert.deepEqual(w.runtime.violations, []);
  await w.end();
});

test('C2: edits at 0, 5 and 10 s of a pod that ignores TERM: one kill of full grace, one start, last revision', async () => {
  const w = new World();
  w.runtime.onStart((_, __, pod) => (pod.uid === 'u1' ? { ignoresTerm: true } : {}));
  await w.run();
  const grace = { graceSeconds: 20 };
  let current: DesiredPod = desiredPod('web', 'u1', grace);
  w.add(current);
  await w.clock.advance(1000);
  const begun = w.at;
  for (let i = 2; i <= 4; i++) {
    w.remove(current);
    current = desiredPod('web', `u${i}`, grace);
    w.add(current);
    await w.clock.advance(5000);
  }
  await w.clock.advance(4900);
  assert.equal(w.runtime.find('web', 'app')?.podUid, 'u1');
  assert.equal(w.at - begun < 20_000, true);
  await w.clock.advance(1000);
  assert.deepEqual(w.runtime.running(), ['web/app']);
  assert.equal(w.runtime.find('web', 'app')?.podUid, 'u4');
  assert.equal(count(w, 'runSandbox'), 2);
  assert.equal(count(w, 'stopContainer'), 1);
  assert.deepEqual(
    w.took().filter((l) => !l.startsWith('sync')),
    ['kill u1 20', 'gone u2', 'gone u3', 'terminated u1', 'gone u1'],
  );
  assert.deepEqual(w.runtime.violations, []);
  await w.end();
});
