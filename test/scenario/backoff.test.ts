/** Restart back-off of an appliance (field case D13): its own limits, told, gone with an edit, and deaf to the clock. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { World } from './world.ts';

const crashing = (annotations: string, tag = '1') =>
  `apiVersion: v1\nkind: Pod\nmetadata: {name: web, annotations: {${annotations}}}\nspec:\n  containers: [{name: app, image: "localhost/busybox:${tag}"}]\n`;
const own = '"podsched.dev/crash-backoff": "1s,20s"';

/** A pod whose app ends at once with an error until `well` is set. */
async function crashes(annotations: string): Promise<{ world: World; mend(): void; starts(): number }> {
  const world = new World();
  let well = false;
  world.runtime.onStart(() => (well ? {} : { exitAfterMs: 100, exitCode: 1 }));
  world.folder.files.set('web.yaml', crashing(annotations));
  await world.start();
  await world.advance(180);
  return {
    world,
    mend: () => {
      well = true;
    },
    starts: () => world.runtime.deeds.filter((d) => d === 'startContainer').length,
  };
}

const isUp = (world: World): boolean => world.pod('web')?.status.containerStatuses?.[0]?.state.running !== undefined;

test('D13: after three minutes of crashes the pod is up within its own longest wait once the cause is gone', async () => {
  const { world, mend, starts } = await crashes(own);
  const waiting = world.pod('web')?.status.containerStatuses?.[0]?.state.waiting;
  assert.equal(waiting?.reason, 'CrashLoopBackOff');
  assert.match(waiting?.message ?? '', /^back-off 20s /);
  assert.ok(starts() >= 10, `${starts()} starts`);
  const next = world.sync('web')?.nextRetrySeconds ?? Number.NaN;
  assert.ok(next >= 0 && next <= 20, `the next try is told: in ${next} s`);
  mend();
  await world.advance(21);
  assert.ok(isUp(world));
});

test('D13: without a word of its own it waits up to five minutes', async () => {
  const { world, mend } = await crashes('note: none');
  assert.match(world.pod('web')?.status.containerStatuses?.[0]?.state.waiting?.message ?? '', /^back-off 2m40s /);
  mend();
  await world.advance(21);
  assert.ok(!isUp(world));
  await world.advance(160);
  assert.ok(isUp(world));
});

test('D13: an edit is tried at once, and the waits begin anew', async () => {
  const { world, starts } = await crashes(own);
  const before = starts();
  world.folder.write('web.yaml', crashing(own, '2'));
  await world.advance(1);
  assert.equal(starts(), before + 1);
  await world.advance(2);
  assert.equal(starts(), before + 2, 'the first wait is a second again');
});

test('D13: limits that are written while it waits hold at once', async () => {
  const { world, mend } = await crashes('note: none');
  mend();
  world.folder.write('web.yaml', crashing('"podsched.dev/crash-backoff": "1s,5s"'));
  await world.advance(10);
  assert.ok(isUp(world));
});

test('D13: a clock that is set forth and back moves no try', async () => {
  const tries = async (clock: (world: World, second: number) => void): Promise<number[]> => {
    const { world } = await crashes(own);
    for (let second = 0; second < 60; second++) {
      clock(world, second);
      await world.advance(1);
    }
    return world.runtime.calls.filter((c) => c.method === 'startContainer').map((c) => c.at);
  };
  const steady = await tries(() => {});
  const jumping = await tries((world, second) => world.clock.setWall(second % 2 === 0 ? 0 : world.clock.now() + 86_400_000));
  assert.ok(steady.length > 10);
  assert.deepEqual(jumping, steady);
});
