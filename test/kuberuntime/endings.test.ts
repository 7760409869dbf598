import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SyncResult } from '../../src/container/syncResult.ts';
import type { ContainerId } from '../../src/container/words.ts';
import { type Ending, Endings } from '../../src/kuberuntime/endings.ts';
import { FakeClock } from '../fakes/fakeClock.ts';

const id = 'c' as ContainerId;
const done: SyncResult = { action: 'KillContainer', target: 'c' };
const failed: SyncResult = { ...done, error: { reason: 'KillContainerError', message: 'no' } };

/** An end that runs its hook unless it ran, and is then in the runtime's hands until it is released. */
function stops() {
  const hooks: number[] = [];
  const release: ((result: SyncResult) => void)[] = [];
  const end = (ending: Ending): Promise<SyncResult> => {
    if (!ending.hookRan) hooks.push(release.length);
    ending.hookRan = true;
    ending.stopping = true;
    return new Promise((resolve) => release.push(resolve));
  };
  return { hooks, release, end };
}

test('the first of two stops returns: who asks then joins the other one, and no hook runs again', async () => {
  const endings = new Endings(new FakeClock());
  const { hooks, release, end } = stops();
  const patient = endings.run(id, 60, end);
  const short = endings.run(id, 4, end);
  release[0]?.(done);
  await patient;
  const third = endings.run(id, 4, end);
  assert.equal(release.length, 2, 'no third stop');
  release[1]?.(done);
  assert.deepEqual(await Promise.all([short, third]), [done, done]);
  assert.deepEqual(hooks, [0]);
});

test('stops that failed and were never asked for again are forgotten in the end', async () => {
  const endings = new Endings(new FakeClock());
  for (let i = 0; i < 5000; i++) await endings.run(`c${i}` as ContainerId, 4, async () => failed);
  assert.ok(endings.size <= 256, String(endings.size));
  let hookRan: boolean | undefined;
  await endings.run('c4999' as ContainerId, 4, async (ending) => {
    hookRan = ending.hookRan;
    return done;
  });
  assert.equal(hookRan, false);
});
