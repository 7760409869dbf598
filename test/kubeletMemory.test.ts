/** A process that the kernel killed for want of memory in a container that goes on is told of. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../src/api/objects.ts';
import { type ContainerId, type ContainerStatus, emptyPodStatus, type RuntimePodStatus } from '../src/container/words.ts';
import { ChildKills } from '../src/kubeletMemory.ts';
import { FakeClock, settle } from './fakes/fakeClock.ts';

const uid = 'aaaa-bbbb' as PodUid;
const id = 'c0ffee' as ContainerId;

function world() {
  const clock = new FakeClock();
  const told: string[] = [];
  let state: ContainerStatus['state'] | undefined = 'running';
  const statusOf = (): RuntimePodStatus | undefined =>
    state && { ...emptyPodStatus(uid, 'web', 'default'), containers: [{ id, name: 'app', state } as ContainerStatus] };
  const kills = new ChildKills({ clock, statusOf, event: (pod, c, reason) => told.push(`${pod.namespace}/${pod.name} ${c} ${reason}`) });
  const pass = async (ms: number) => {
    await clock.advance(ms);
    await settle();
  };
  return { kills, told, pass, set: (s: typeof state) => (state = s) };
}

test('the kill of a child is told once in a minute, however often it happens', async () => {
  const { kills, told, pass } = world();
  kills.killed(id, uid);
  kills.killed(id, uid);
  assert.deepEqual(told, [], 'the end of the container may come yet');
  await pass(3_000);
  const line = 'default/web app ProcessOOMKilled';
  assert.deepEqual(told, [line]);
  kills.killed(id, uid);
  await pass(10_000);
  assert.deepEqual(told, [line]);
  await pass(60_000);
  kills.killed(id, uid);
  await pass(3_000);
  assert.deepEqual(told, [line, line]);
});

test('a kill that ended the container, or a pod that is gone, is told by its status alone', async () => {
  for (const state of ['exited', undefined] as const) {
    const { kills, told, pass, set } = world();
    kills.killed(id, uid);
    set(state);
    await pass(5_000);
    assert.deepEqual(told, []);
  }
});
