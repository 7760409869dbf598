import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DesiredPod } from '../../src/api/desired.ts';
import type { PodUid } from '../../src/api/objects.ts';
import type { PressureType } from '../../src/api/pressures.ts';
import { ComeBack } from '../../src/eviction/comeBack.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { desiredPod } from '../pod/desiredPod.ts';

function house() {
  const clock = new FakeClock();
  const store = new MemoryStore();
  const wanted = new Map<PodUid, DesiredPod>();
  const h = {
    clock,
    wanted,
    pressures: [] as PressureType[],
    renewed: [] as string[],
    failing: false,
    instances: 0,
    make: () =>
      new ComeBack({
        ...{ clock, log: silentLog, store },
        desired: (uid) => wanted.get(uid),
        pressures: () => h.pressures,
        renew: async (uid) => {
          if (h.failing) throw new Error('the card is full');
          const before = wanted.get(uid);
          wanted.delete(uid);
          h.renewed.push(uid);
          if (before) h.want({ ...before, uid: `${before.name}-${++h.instances}` as PodUid });
        },
        waits: () => {},
      }),
    want: (pod: DesiredPod): DesiredPod => {
      wanted.set(pod.uid, pod);
      return pod;
    },
    now: (name: string): DesiredPod => {
      const pod = [...wanted.values()].find((p) => p.name === name);
      assert.ok(pod);
      return pod;
    },
  };
  return h;
}

/** Evicts the present instance of `leak`, and it has ended. */
async function evict(
  h: ReturnType<typeof house>,
  back: ComeBack,
  name = 'leak',
  until: PressureType | undefined = undefined,
): Promise<void> {
  const pod = h.now(name);
  await back.decided(pod, { until, graceSeconds: 1 });
  back.ended(pod);
}

test('an evicted pod comes back when the pressure that ended it is over, and not before', async () => {
  const h = house();
  const back = h.make();
  h.want(desiredPod('leak', 'u1'));
  h.pressures = ['MemoryPressure'];
  await evict(h, back, 'leak', 'MemoryPressure');
  await h.clock.advance(3_600_000);
  assert.deepEqual(h.renewed, []);
  h.pressures = ['DiskPressure'];
  back.pressureChanged();
  await h.clock.advance(0);
  assert.deepEqual(h.renewed, ['u1']);
  back.stop();
  assert.equal(h.clock.sleeping, 0);
});

test('evicted again soon, it waits twice as long each time, up to half an hour, and always comes back (22)', async () => {
  const h = house();
  const back = h.make();
  h.want({ ...desiredPod('leak', 'u1'), workHash: '1:w' });
  const waits: number[] = [];
  for (let i = 0; i < 11; i++) {
    await evict(h, back);
    const before = h.renewed.length;
    let seconds = 0;
    for (; h.renewed.length === before; seconds += 10) await h.clock.advance(10_000);
    waits.push(seconds);
  }
  assert.deepEqual(waits, [10, 20, 40, 80, 160, 320, 640, 1280, 1800, 1800, 1800]);
  await h.clock.advance(3_600_000);
  await evict(h, back);
  await h.clock.advance(10_000);
  assert.equal(h.renewed.length, 12, 'after a long life it begins anew');
  back.stop();
});

test('an edited pod begins anew; a removed one does not come back', async () => {
  const h = house();
  const back = h.make();
  h.want(desiredPod('leak', 'u1'));
  await evict(h, back);
  await h.clock.advance(10_000);
  h.wanted.clear();
  h.want(desiredPod('leak', 'u9'));
  await evict(h, back);
  await h.clock.advance(10_000);
  assert.deepEqual(h.renewed, ['u1', 'u9']);
  await evict(h, back);
  h.wanted.clear();
  await h.clock.advance(3_600_000);
  assert.equal(h.renewed.length, 2);
  back.retain(() => false);
  back.stop();
});

test('an agent that is started anew knows how patiently a pod was being ended, and brings it back', async () => {
  const h = house();
  const first = h.make();
  const pod = h.want(desiredPod('leak', 'u1'));
  await first.decided(pod, { until: 'DiskPressure', graceSeconds: 1 });
  first.stop();
  const second = h.make();
  await second.load();
  assert.equal(second.graceOf(pod.uid), 1);
  assert.equal(second.graceOf('u2' as PodUid), undefined);
  second.ended(pod);
  await h.clock.advance(10_000);
  assert.deepEqual(h.renewed, ['u1']);
  second.stop();
});

test('they come one after another, and one that could not be stored is tried again', async () => {
  const h = house();
  const back = h.make();
  for (const name of ['a', 'b', 'c']) h.want(desiredPod(name, `u-${name}`));
  for (const name of ['a', 'b', 'c']) await evict(h, back, name);
  await h.clock.advance(10_000);
  assert.deepEqual(h.renewed, ['u-a']);
  await h.clock.advance(10_000);
  assert.equal(h.renewed.length, 2);
  h.failing = true;
  await h.clock.advance(10_000);
  h.failing = false;
  await h.clock.advance(30_000);
  assert.deepEqual([...h.renewed].sort(), ['u-a', 'u-b', 'u-c']);
  back.stop();
});
